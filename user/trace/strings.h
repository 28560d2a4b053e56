/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's table of interned texts: text -> id, from 1 in order of first use. New texts enter the young one of two
 * generations; when it is full, the old one is freed and replaced by it. A text of the old generation that is used is
 * copied to the young one and retains its id. An evicted text gets a new id and is written again, which costs bytes in
 * the file but bounds memory regardless of what targets do.
 */
#pragma once

#include "trace/bytes.h"

#define STRINGS_BYTES (4U << 20) /* of texts in one generation */
#define STRINGS_MAX   32768 /* texts in one generation */

struct string_entry {
	u64 hash;
	u32 at; /* offset in text */
	u32 len;
	u32 id;
};

struct string_table {
	struct bytes text;
	struct string_entry *entries;
	u32 n, capacity;
	u32 *slots; /* index in entries + 1; 0: empty */
	u32 n_slots; /* a power of two */
};

struct strings {
	struct string_table young, old;
	u32 max; /* texts in one generation; 0: STRINGS_MAX */
	u32 last; /* the last id that was given */
	u32 moved; /* texts that are in both tables */
	u64 evicted;
};

/* Returns the text's id; 0: no memory. *fresh: the id is new, so its record must be written. len > 0. */
u32 strings__intern(struct strings *s, const char *text, size_t len, bool *fresh);
/* Empties the table, so that each text gets a new id when it is next used. */
void strings__forget(struct strings *s);
void strings__free(struct strings *s);
u32 strings__entries(const struct strings *s);
u64 strings__bytes(const struct strings *s);
