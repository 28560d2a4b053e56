// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Python decodes a byte that is not UTF-8 to half a surrogate pair (PEP 383, surrogateescape). */
static bool is_undecoded_byte(u32 c)
{
	return c >= 0xdc80 && c < 0xdd00;
}

static char *put_char(char *to, u32 c)
{
	static const char digits[] = "0123456789abcdef";

	if (is_undecoded_byte(c)) {
		*to++ = '\\';
		*to++ = 'x';
		*to++ = digits[c >> 4 & 15];
		*to++ = digits[c & 15];
		return to;
	}
	if (c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = '?';
	if (c < 0x80) {
		*to++ = c;
	} else if (c < 0x800) {
		*to++ = 0xc0 | c >> 6;
		*to++ = 0x80 | (c & 0x3f);
	} else if (c < 0x10000) {
		*to++ = 0xe0 | c >> 12;
		*to++ = 0x80 | (c >> 6 & 0x3f);
		*to++ = 0x80 | (c & 0x3f);
	} else {
		*to++ = 0xf0 | c >> 18;
		*to++ = 0x80 | (c >> 12 & 0x3f);
		*to++ = 0x80 | (c >> 6 & 0x3f);
		*to++ = 0x80 | (c & 0x3f);
	}
	return to;
}

char *python__utf8(const u8 *chars, size_t size, u32 width)
{
	char *text, *to;

	if (width != 1 && width != 2 && width != 4)
		return NULL;
	/* a character of one byte takes at most two in UTF-8, one of two bytes four, one of four bytes four */
	text = to = malloc(size * 2 + 1);
	if (!text)
		return NULL;
	for (size_t i = 0; i + width <= size; i += width) {
		u32 c = 0;

		/* x86-64 stores the lowest byte first */
		memcpy(&c, chars + i, width);
		to = put_char(to, c);
	}
	*to = '\0';
	return text;
}
