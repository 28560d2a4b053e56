/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of functions that differ only in where their arguments are. A table is a macro with a row per group:
 *
 *	#define SETS(ROW) \
 *		ROW(FN_PTDS(Memset), .dst = 1, .value = 2, .bytes = 3) \
 *		ROW(FN_PTSZ(MemsetAsync), .dst = 1, .value = 2, .bytes = 3, .stream = 4)
 *
 * which makes both the program's list of functions and an array of rows, whose index is the number of the group. The
 * numbers are those of the words in which arguments are passed: 1 to 6 in registers, from 7 on the stack. A struct of
 * more than 16 bytes that is passed by value is on the stack. No argument has number 0.
 */
#pragma once

#include "core/args.h"

enum {
	WORDS_IN_REGISTERS = 6,
	WORDS_ON_STACK = RUNTIME(7) DRIVER(0), /* what the tables need */
	WORDS_MAX = RUNTIME(16) DRIVER(8), /* a power of two: the verifier derives the bound of an index from a mask */
	ROWS_MAX = 32, /* the same */
};

#define ROW_FUNCTIONS(functions, ...) functions ";"
#define ROW_WORDS(functions, ...)     { __VA_ARGS__ },

/* The row of a group. Without the barrier clang drops the mask if it knows a smaller bound of the number. */
#define ROW_OF(rows, group)                        \
	({                                         \
		barrier_var(group);                \
		&(rows)[(group) & (ROWS_MAX - 1)]; \
	})

static __always_inline void words__read(u64 *words, const struct args *a)
{
	words[1] = a->a1;
	words[2] = a->a2;
	words[3] = a->a3;
	words[4] = a->a4;
	words[5] = a->a5;
	words[6] = a->a6;
	if (WORDS_ON_STACK)
		bpf_probe_read_user(&words[WORDS_IN_REGISTERS + 1], WORDS_ON_STACK * sizeof(u64),
				    (const void *)(a->sp + 8));
}

/* 0 if there is no such argument. */
static __always_inline u64 word(const u64 *words, u8 number)
{
	return words[number & (WORDS_MAX - 1)];
}

/* The same, but 1 if there is no such argument; without a branch, because the verifier follows both sides of each. */
static __always_inline u64 word__factor(const u64 *words, u8 number)
{
	u64 none = ((u64)number - 1) >> 63;

	barrier_var(none);
	return word(words, number) | none;
}
