/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_SEARCH_H
#define SONDE_UTIL_SEARCH_H

#include <stddef.h>

/*
 * By halving: of `n` elements in order, how many come before what is searched. `before` is an expression of the index `i` that
 * is true of these, which are the first ones, and of no other. So it is the index of the first other element, n if there is none.
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
