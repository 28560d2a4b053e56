/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's table of interned texts: text -> id, ids from 1 in the order of first use. Of two generations the young one takes
 * new texts; when it is full the old one is freed and the young one takes its place. A text of the old one that is met again
 * is copied and keeps its id. One that was forgotten gets another id and is written again, which costs bytes in the file
 * and bounds the memory whatever a target does.
 */
#ifndef SONDE_TRACE_STRINGS_H
#define SONDE_TRACE_STRINGS_H

#include "trace/bytes.h"

#define STRINGS_BYTES (4U << 20) /* of texts in one generation */
#define STRINGS_MAX   32768 /* texts in one generation */

struct string_entry {
	u64 hash;
	u32 at; /* in text */
	u32 len;
	u32 id;
};

struct string_table {
	struct bytes text;
	struct string_entry *entries;
	u32 n, room;
	u32 *slots; /* entry + 1, 0: empty */
	u32 n_slots; /* a power of two */
};

struct strings {
	struct string_table young, old;
	u32 max; /* texts in one generation, 0: STRINGS_MAX */
	u32 last; /* id */
	u32 moved; /* texts of the old table that are in the young one too */
	u64 evicted;
};

/* The text's id, 0 when there is no memory; *fresh if it is new and its record is to be written. len > 0. */
u32 strings__intern(struct strings *s, const char *text, size_t len, bool *fresh);
/* Empties the table: each text gets another id when it is met again. */
void strings__forget(struct strings *s);
void strings__free(struct strings *s);
u32 strings__entries(const struct strings *s);
u64 strings__bytes(const struct strings *s);

#endif
