/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <string.h>

/* Copies as much of a text as fits in `size` bytes, 4 or more, with a NUL; of a UTF-8 text whole characters. */
static inline void utf8__copy(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		for (len = size - 1; len > size - 4 && (text[len] & 0xc0) == 0x80; len--)
			;
	memcpy(to, text, len);
	to[len] = '\0';
}
