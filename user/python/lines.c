// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Decodes the line tables of code objects. There are three formats, which CPython's sources describe in
 * Objects/lnotab_notes.txt (3.8 to 3.10) and Objects/locations.md (3.11 and later; since 3.13
 * InternalDocs/code_objects.md).
 */
#include "python/lines.h"

/* co_lnotab, 3.8 and 3.9: pairs of bytes, the increments of address and line. */
static s64 by_lnotab(const u8 *table, size_t size, s64 line, s64 offset)
{
	s64 addr = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		addr += table[i];
		if (addr > offset)
			break;
		line += (s8)table[i + 1];
	}
	return line;
}

/*
 * co_linetable of 3.10: pairs of bytes, the length of a range and the increment of its line; -128: the range has no
 * line.
 */
static s64 by_ranges(const u8 *table, size_t size, s64 line, s64 offset)
{
	s64 end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		s8 delta = (s8)table[i + 1];

		end += table[i];
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/*
 * A number of 6 bits per byte, the lowest bits first; bit 6 of a byte: another byte follows. The lowest bit of the
 * number is its sign.
 */
static s64 read_signed(const u8 *p, const u8 *end)
{
	u64 number = 0;
	u32 shift = 0;

	while (p < end && shift < 60) {
		number |= (u64)(*p & 0x3f) << shift;
		shift += 6;
		if (!(*p++ & 0x40))
			break;
	}
	return number & 1 ? -(s64)(number >> 1) : (s64)(number >> 1);
}

/*
 * co_linetable, 3.11 and later: each entry begins with a byte that has bit 7 set, its kind, and its length in
 * instructions of two bytes.
 */
static s64 by_locations(const u8 *table, size_t size, s64 line, s64 offset)
{
	const u8 *p = table, *stop = table + size;
	s64 end = 0;

	while (p < stop) {
		u32 kind = *p >> 3 & 15;
		s64 delta = 0;

		end += ((*p & 7) + 1) * 2;
		p++;
		if (kind == 13 || kind == 14)
			delta = read_signed(p, stop);
		else if (kind >= 10 && kind <= 12)
			delta = kind - 10;
		/* the table is untrusted: a line that overflows wraps, and counts as no line */
		line = (s64)((u64)line + (u64)delta);
		if (offset < end)
			return kind == 15 ? 0 : line;
		while (p < stop && !(*p & 0x80))
			p++;
	}
	return 0;
}

u32 python__line(u16 version, const u8 *table, size_t size, u32 first_line, s64 offset)
{
	s64 line;

	if (offset < 0)
		return first_line;
	if (version < 0x030a)
		line = by_lnotab(table, size, first_line, offset);
	else if (version == 0x030a)
		line = by_ranges(table, size, first_line, offset);
	else
		line = by_locations(table, size, first_line, offset);
	return line > 0 && line <= 0x7fffffff ? line : 0;
}
