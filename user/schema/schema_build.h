/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two makers of a schema share. */
#ifndef SONDE_SCHEMA_SCHEMA_BUILD_H
#define SONDE_SCHEMA_SCHEMA_BUILD_H

#include "schema/schema.h"

#define SCHEMA_FIELDS_MAX 1024
#define SCHEMA_EVENT_MAX  RECORD_MAX

/* A printf into err that returns code, so that `return fail(...)` reads well. */
__attribute__((format(printf, 4, 5))) int schema__fail(char *err, size_t err_len, int code, const char *fmt, ...);

/*
 * Checks each event (it begins with struct event, fields lie inside, no name
 * twice, only the last is a tail), sets what follows from the fields (index,
 * is_span, is_call), sorts everything by id and rejects ids used twice.
 */
int schema__finish(struct schema *s, char *err, size_t err_len);

/* The parts of one that is no part of a schema yet. */
void schema_event__clear(struct schema_event *e);
void schema_enum__clear(struct schema_enum *e);

/* One more zeroed element behind an array of n; false: no memory, and the array stays as it is. */
void *schema__more(void *array, u32 n, size_t size);
#define MORE(array, n)                                                      \
	({                                                                  \
		void *more_ = schema__more((array), (n), sizeof(*(array))); \
                                                                            \
		if (more_)                                                  \
			(array) = more_;                                    \
		more_ != NULL;                                              \
	})

#endif
