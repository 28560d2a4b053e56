/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays that grow, each a pointer and a number of elements. The room follows from that number (4, 8, 16, ...), so
 * that no field keeps it: an array that these macros grow is allocated by them alone. It may lose elements.
 */
#ifndef SONDE_UTIL_ARRAY_H
#define SONDE_UTIL_ARRAY_H

#include "core/types.h"

#include <stddef.h>

/* The array with room for an element behind n; NULL: no memory, and the array stays as it is. */
void *array__extend(void *array, size_t n, size_t size);

/* Room for one more element: false without memory. */
#define array__room(array, n)                                                \
	({                                                                   \
		void *room_ = array__extend((array), (n), sizeof(*(array))); \
                                                                             \
		if (room_)                                                   \
			(array) = room_;                                     \
		room_ != NULL;                                               \
	})

/* Adds the value behind the others: false without memory. */
#define array__push(array, n, ...) (array__room(array, n) && ((array)[(n)++] = (__VA_ARGS__), true))

/* How many elements an array that was grown to n has room for, and bytes it takes. */
size_t array__capacity(size_t n);
#define array__bytes(array, n) (array__capacity(n) * sizeof(*(array)))

/* The number of elements of an array that is declared as one. */
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
