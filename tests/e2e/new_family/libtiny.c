// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The library that family tiny traces. */
#include <stddef.h>

int tiny_work(void *data, size_t bytes)
{
	volatile unsigned char *byte = data;

	*byte += bytes;
	return *byte;
}
