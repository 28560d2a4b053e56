/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a field holds, as all formats write it: enums and kernels by name, strings by text. */
#ifndef SONDE_EXPORT_VALUE_H
#define SONDE_EXPORT_VALUE_H

#include <stdio.h>

#include "model/names.h"

struct field_value {
	enum { FIELD_IS_U64, FIELD_IS_S64, FIELD_IS_HEX, FIELD_IS_DOUBLE, FIELD_IS_TEXT } type;
	u64 u; /* also of HEX */
	s64 s;
	double d;
	const char *text; /* untrusted bytes, not terminated */
	u32 len;
	bool lasts; /* text stays where it is while the trace is open */
};

/* symbolic: errors and signals by name too. */
void field_value__get(struct field_value *out, const struct names *names, const struct view *v,
		      const struct schema_field *f, bool symbolic);
/* Is f one of struct event's or struct span's? */
bool field__is_common(const struct schema_event *e, const struct schema_field *f);
/* Does f hold the id of a stack? */
bool field__is_stack(const struct schema_field *f);
/* What there was when tracing began, and names: nothing that happens on a time line. */
bool event__is_inventory(const struct schema_event *e);
/* What an event is to be called: the function of a call, the system call's name, else its kind. */
const char *event__title(const struct names *names, const struct view *v, u16 probe);

/* "not returned", "return not seen", .. for the bit of enum event_flags; NULL: no such bit */
const char *event_flag__text(u16 bit);

#endif
