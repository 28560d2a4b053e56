/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Growing arrays, each a pointer and a number of elements. The capacity follows from that number (4, 8, 16, ...) and is
 * stored nowhere, so only these macros may allocate such an array. Elements may be removed.
 */
#pragma once

#include "core/types.h"

#include <stddef.h>

/* Returns the array with room for an element after n; NULL: no memory, and the array is unchanged. */
void *array__extend(void *array, size_t n, size_t size);

/* Makes room for one more element; false: no memory. */
#define array__room(array, n)                                                \
	({                                                                   \
		void *room_ = array__extend((array), (n), sizeof(*(array))); \
                                                                             \
		if (room_)                                                   \
			(array) = room_;                                     \
		room_ != NULL;                                               \
	})

/* Appends the value; false: no memory. */
#define array__push(array, n, ...) (array__room(array, n) && ((array)[(n)++] = (__VA_ARGS__), true))

/* The capacity of an array that has grown to n elements, in elements and in bytes. */
size_t array__capacity(size_t n);
#define array__bytes(array, n) (array__capacity(n) * sizeof(*(array)))

/* The number of elements of a declared array */
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Is a number among those listed? IS_ONE_OF(signal, SIGINT, SIGTERM) */
#define IS_ONE_OF(number, ...) \
	array__has((const u32[]){ __VA_ARGS__ }, sizeof((const u32[]){ __VA_ARGS__ }) / sizeof(u32), number)
bool array__has(const u32 *array, size_t n, u32 number);
