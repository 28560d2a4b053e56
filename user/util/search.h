/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_SEARCH_H
#define SONDE_UTIL_SEARCH_H

#include <stddef.h>

/*
 * Binary search: returns the number of elements, of n sorted ones, for whose index `i` the expression `before` is true.
 * It must be true for a prefix only, so this is the index of the first other element, or n.
 */
#define SEARCH(n, i, before)                                                    \
	({                                                                      \
		size_t search_low = 0, search_high = (n);                       \
		while (search_low < search_high) {                              \
			size_t i = search_low + (search_high - search_low) / 2; \
			if (before)                                             \
				search_low = i + 1;                             \
			else                                                    \
				search_high = i;                                \
		}                                                               \
		search_low;                                                     \
	})

#endif
