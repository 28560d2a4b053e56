/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by schema_btf.c and schema_json.c. */
#pragma once

#include "schema/schema.h"

#define SCHEMA_FIELDS_MAX 1024
#define SCHEMA_EVENT_MAX  RECORD_MAX

/* Prints into err and returns code, for `return schema__fail(...)`. */
__attribute__((format(printf, 4, 5))) int schema__fail(char *err, size_t err_len, int code, const char *fmt, ...);

/*
 * Checks each event (it begins with struct event, fields lie inside, no name occurs twice, only the last field is a
 * tail), sets what is derived from the fields (index, is_span, is_call), sorts everything by id and rejects ids that
 * are used twice.
 */
int schema__finish(struct schema *s, char *err, size_t err_len);

/* Frees the members of an event or enum that is not part of a schema yet. */
void schema_event__clear(struct schema_event *e);
void schema_enum__clear(struct schema_enum *e);

/* Appends one zeroed element to an array of n; NULL: no memory, and the array is unchanged. */
void *schema__more(void *array, u32 n, size_t size);
#define MORE(array, n)                                                      \
	({                                                                  \
		void *more_ = schema__more((array), (n), sizeof(*(array))); \
                                                                            \
		if (more_)                                                  \
			(array) = more_;                                    \
		more_ != NULL;                                              \
	})
