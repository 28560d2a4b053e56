/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stddef.h>

/*
 * Binary search among n sorted elements: returns the first index for which the expression `before`, which uses the
 * index `i`, is false, or n if there is none. `before` must be true for all lower indexes and false for all higher
 * ones.
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
