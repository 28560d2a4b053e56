/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The value of a field as all formats write it: enums and kernels by name, strings as text. */
#pragma once

#include <stdio.h>

#include "model/names.h"

struct field_value {
	enum { FIELD_IS_U64, FIELD_IS_S64, FIELD_IS_HEX, FIELD_IS_DOUBLE, FIELD_IS_TEXT } type;
	u64 u; /* also of HEX */
	s64 s;
	double d;
	const char *text; /* untrusted bytes, not terminated */
	u32 len;
	bool lasts; /* text is valid while the trace is open */
};

/* Reads a field; symbolic: also names errors and signals. */
void field_value__get(struct field_value *out, const struct names *names, const struct view *v,
		      const struct schema_field *f, bool symbolic);
/* Is f a field of struct event or struct span, which all kinds share? */
bool field__is_common(const struct schema_event *e, const struct schema_field *f);
/* Is f the id of a stack? */
bool field__is_stack(const struct schema_field *f);
/* Is the name of such events in none of their fields? names__torch() returns it. */
bool event__has_torch_name(const struct schema_event *e);
/* Buffer size for the title of an event */
#define EVENT_TITLE 256
/*
 * Returns the title of an event: the function of a call, a system call's name, an operator of PyTorch, or the kind. It
 * may be in buf.
 */
const char *event__title(const struct names *names, const struct view *v, u16 probe, char *buf, size_t size);

/* Returns "not returned", "return not seen" etc. for a bit of enum event_flags, NULL for other bits. */
const char *event_flag__text(u16 bit);
