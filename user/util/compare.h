/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions for qsort() and bsearch() that compare members of structs. */
#pragma once

#include "core/types.h"

#define COMPARE(x, y) (((x) > (y)) - ((x) < (y)))

#define ASCENDING(member)           \
	if (x->member != y->member) \
		return x->member < y->member ? -1 : 1;
#define DESCENDING(member)          \
	if (x->member != y->member) \
		return x->member > y->member ? -1 : 1;

/*
 * COMPARE_BY(by_process, struct span, ASCENDING(pid), DESCENDING(end)) defines by_process(), which compares by up to
 * four members: by the next one only where those before are equal.
 */
#define COMPARE_BY(name, type, ...) COMPARE_BY_FOUR(name, type, __VA_ARGS__, , , , )
#define COMPARE_BY_FOUR(name, type, first, second, third, fourth, ...) \
	static int name(const void *a, const void *b)                  \
	{                                                              \
		const type *x = a, *y = b;                             \
                                                                       \
		first second third fourth return 0;                    \
	}

static inline int compare__u64(const void *a, const void *b)
{
	return COMPARE(*(const u64 *)a, *(const u64 *)b);
}

static inline int compare__u32(const void *a, const void *b)
{
	return COMPARE(*(const u32 *)a, *(const u32 *)b);
}
