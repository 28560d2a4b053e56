/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A view of one event, which is either in a chunk's columns or a raw record from a ring. */
#pragma once

#include "trace/reader.h"

struct view {
	const struct schema_event *event;
	const struct rows *rows; /* row i of these; NULL: a record */
	u32 i;
	const void *record; /* of size bytes */
	u32 size;
};

/* Returns false if the schema lacks the kind or the record is shorter than its kind. */
bool view__of_record(struct view *v, const struct schema *s, const void *record, u32 size);
/* A NULL field, or one beyond the record, reads as 0 or "". */
s64 view__s64(const struct view *v, const struct schema_field *f);
double view__double(const struct view *v, const struct schema_field *f);
const char *view__text(const struct view *v, const struct schema_field *f, u32 *len);
/* The fields that all events, spans and calls have, looked up once per chunk */
struct common_fields {
	const struct schema_field *time, *pid, *tid, *probe, *cpu, *flags;
	const struct schema_field *start, *ret; /* NULL if the event is no span or no call */
};
struct common_fields common_fields__of(const struct schema_event *e);

/* Loops over rows with a view of each, `struct view v`: over all of them, or while the condition is true. */
#define ROWS_EACH(v, of) ROWS_WHILE(true, v, of)
#define ROWS_WHILE(condition, v, of) \
	for (struct view v = { .event = rows__event(of), .rows = of }; (condition) && v.i < rows__count(of); v.i++)

/*
 * Returns the constant's name for an error ("ENOENT" for -2) or a signal ("TERM" for 15), by the field's unit; NULL:
 * none.
 */
const char *schema_field__constant(const struct schema_field *f, s64 value);

/* Reads a field by name, which is slow. */
s64 view__get(const struct view *v, const char *name);
