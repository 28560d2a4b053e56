/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is missing from a trace, and how that can change a report's figures. */
#pragma once

#include <stddef.h>

#include "core/types.h"

/* All that was lost of one family, for one reason and object */
struct loss {
	u16 family;
	u16 object; /* of a library, with LOSS_ATTACH_GAP and LOSS_UNPROBED; else 0 */
	s64 reason;
	u64 count;
	u64 first, last; /* CLOCK_MONOTONIC ns */
	bool outside; /* before or after the traced time: loss__is_outside() */
	u64 recorded; /* events of the family that are in the trace; of family core: all events */
	const char *family_name; /* NULL: not in the schema */
	const char *path; /* of the object, or NULL */
};

enum loss_effect {
	EFFECT_MISSING, /* events are missing: counts and sums are too low */
	EFFECT_LENGTH, /* events are recorded without their end */
	EFFECT_DETAIL, /* events are recorded without a value that could not be read */
	EFFECT_STACK, /* events are recorded without their stack */
	EFFECT_MAPPING, /* a library may not have been probed */
	EFFECT_GAP, /* calls before a library was probed are missing */
	EFFECT_READINGS, /* values of a time are missing that are read at intervals: those before it hold */
	EFFECT_UNPROBED, /* calls of a library's functions that have no probes are missing */
};

/* Adds the count and time of `one`, which is of the same family, reason and object. */
void loss__join(struct loss *l, const struct loss *one);
/* Joins `one` with that of the same family, reason, object and side of the traced time, or appends it. 0 or -ENOMEM. */
int losses__add_to(struct loss **list, u32 *n, const struct loss *one);
/* "ring full": the text of an enum loss_reason. */
const char *loss__reason(s64 reason);
enum loss_effect loss__effect(const struct loss *l);
/* Returns the number of lost records: 0 for LOSS_ATTACH_GAP and LOSS_UNPROBED, which count a library. */
u64 loss__records(const struct loss *l);
/* Returns the percentage of events that are missing or affected, of those that there would be without the loss. */
double loss__percent(const struct loss *l);

/* A trace's times, for texts. */
struct loss_times {
	u64 start; /* times are relative to it */
	u64 live, stop; /* the traced time */
};

/* One sentence on the losses outside of the traced time; "": there are none. Returns buf. */
char *losses__outside_text(char *buf, size_t size, const struct loss *list, u32 n);
/*
 * The line of the i-th loss below a report: what was lost when and why, and what that changes; "" outside of the
 * traced time. Of many attach gaps of a
 * family the first have a line each and the others one together. Returns buf.
 */
char *losses__line(char *buf, size_t size, const struct loss *list, u32 n, u32 i, const struct loss_times *t);
/* Only what the loss changes. Returns buf. */
char *loss__consequence(char *buf, size_t size, const struct loss *l, const struct loss_times *t);
/* A sentence on whether counts and sums hold, from all losses together; "" if there are none. Returns buf. */
char *losses__verdict(char *buf, size_t size, const struct loss *list, u32 n, const struct loss_times *t);
