/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's table of interned texts: text -> id, ids from 1 in the order of first use.
 * A table that passes STRINGS_BYTES is emptied: a text met again then gets a second id,
 * which costs bytes in the file and bounds the memory whatever a target does.
 */
#ifndef SONDE_TRACE_STRINGS_H
#define SONDE_TRACE_STRINGS_H

#include "trace/bytes.h"

#define STRINGS_BYTES (64U << 20)

struct string_entry {
	u64 at; /* in text */
	u32 len;
	u32 hash; /* upper half: most different texts are told apart without reading them */
};

struct strings {
	struct bytes text;
	struct string_entry *entries; /* id - 1 - before */
	u32 before; /* ids given out by emptied tables */
	u32 n, room;
	u32 *slots; /* entry + 1, 0: empty */
	u32 n_slots; /* a power of two */
};

/* The text's id, 0 when there is no memory; *fresh if it is new. len > 0. */
u32 strings__intern(struct strings *s, const char *text, size_t len, bool *fresh);
void strings__free(struct strings *s);

#endif
