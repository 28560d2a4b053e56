// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/array.h"

#include <stdlib.h>

#define FIRST_ROOM 4

size_t array__capacity(size_t n)
{
	size_t room = n ? FIRST_ROOM : 0;

	while (room < n)
		room *= 2;
	return room;
}

void *array__extend(void *array, size_t n, size_t size)
{
	/* only arrays of 0 or a power of two (4 or more) elements are full */
	if (n % FIRST_ROOM || (n & (n - 1)))
		return array;
	return reallocarray(array, n ? 2 * n : FIRST_ROOM, size);
}

bool array__has(const u32 *array, size_t n, u32 number)
{
	for (size_t i = 0; i < n; i++)
		if (array[i] == number)
			return true;
	return false;
}
