/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorts elements that belong to numbered groups, such as the waits of threads, by group and then by a comparison. A
 * group whose elements are in order already, as most are in a trace, costs no more than a look at each of them.
 */
#pragma once

#include "core/types.h"

#include <stddef.h>

/*
 * Returns the numbers of the elements in order, to be freed; NULL: no memory. groups has the group of each of n
 * elements, below n_groups. compare is called as by qsort_r with pointers to two numbers, which it must tell apart.
 */
u32 *group_sort__order(const u32 *groups, u32 n, u32 n_groups, int (*compare)(const void *a, const void *b, void *arg),
		       void *arg);
/* Puts n elements of this size, at most GROUP_SORT_SIZE_MAX bytes, in that order, in place. order is used up. */
#define GROUP_SORT_SIZE_MAX 64
void group_sort__move(void *elements, size_t size, u32 *order, u32 n);
