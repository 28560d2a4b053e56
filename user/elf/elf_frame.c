// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds functions by their unwind tables, which stripping does not remove: .eh_frame_hdr is a sorted array of (start,
 * address of the FDE), and a frame description entry (FDE) contains the function's size. Layout: Linux Standard Base,
 * "Exception Frames"; only the encodings that linkers write are supported.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/elf_cursor.h"

/* How the FDEs of a common information entry (CIE) encode their addresses and those of their LSDA. */
struct encodings {
	u8 code;
	u8 lsda; /* ENC_NONE: none */
	bool sized; /* the augmentation data begins with its length */
};

static int cie_encoding(struct elf *elf, u64 addr, struct encodings *out)
{
	struct cursor c = at(elf, addr, 256);
	const char *aug;
	u64 version;

	get(&c, 4); /* length */
	if (get(&c, 4)) /* a CIE has id 0 */
		return -ENOENT;
	version = get(&c, 1);
	if (c.is_truncated || !memchr(c.data + c.pos, 0, c.size - c.pos))
		return -ENOENT;
	aug = (const char *)c.data + c.pos;
	c.pos += strlen(aug) + 1;
	get_leb128(&c); /* code alignment */
	get_leb128(&c); /* data alignment, signed; only skipped here */
	if (version == 1)
		get(&c, 1);
	else
		get_leb128(&c); /* return address column */
	*out = (struct encodings){ .lsda = ENC_NONE };
	if (*aug++ != 'z')
		return c.is_truncated ? -ENOENT : 0;
	out->sized = true;
	get_leb128(&c); /* length of the augmentation data */
	for (; *aug && !c.is_truncated; aug++) {
		u8 enc;

		switch (*aug) {
		case 'R':
			out->code = get(&c, 1);
			break;
		case 'P':
			enc = get(&c, 1);
			get_encoded(&c, enc & ENC_FORMAT, false);
			break;
		case 'L':
			out->lsda = get(&c, 1);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -ENOENT;
		}
	}
	return c.is_truncated ? -ENOENT : 0;
}

/* Reads an FDE; *lsda is 0 if the function has none. */
static int read_fde(struct elf *elf, u64 addr, u64 *start, u64 *size, u64 *lsda)
{
	struct cursor c = at(elf, addr, 128);
	struct encodings enc;
	u64 length, back, here;
	struct cursor raw;

	length = get(&c, 4);
	if (length < 8 || length == 0xffffffff)
		return -ENOENT;
	here = c.addr + c.pos;
	back = get(&c, 4);
	if (c.is_truncated || !back || back > here || cie_encoding(elf, here - back, &enc))
		return -ENOENT;
	*start = get_encoded(&c, enc.code, true);
	*size = get_encoded(&c, enc.code, false);
	*lsda = 0;
	if (enc.sized && enc.lsda != ENC_NONE) {
		get_leb128(&c);
		raw = c;
		/* a zero means that there is no pointer, even if it is relative */
		if (get_encoded(&raw, enc.lsda & ENC_FORMAT, false))
			*lsda = get_encoded(&c, enc.lsda, true);
	}
	return c.is_truncated ? -ENOENT : 0;
}

/* The sorted table: the address of its first entry and the number of entries; its numbers are relative to *base. */
static int table(struct elf *elf, u64 *base, u64 *first, u64 *n)
{
	struct cursor c;
	u64 fde_enc, ptr_enc, table_enc;
	u32 i;

	for (i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].p_type == PT_GNU_EH_FRAME)
			break;
	if (i == elf->n_segments)
		return -ENOENT;
	*base = elf->segments[i].p_vaddr;
	c = at(elf, *base, 32);
	if (get(&c, 1) != 1)
		return -ENOENT;
	ptr_enc = get(&c, 1);
	fde_enc = get(&c, 1);
	table_enc = get(&c, 1);
	get_encoded(&c, ptr_enc & ENC_FORMAT, false); /* address of .eh_frame */
	if (c.is_truncated || fde_enc != ENC_UDATA4 || table_enc != ENC_TABLE)
		return -ENOENT;
	*n = get(&c, 4);
	*first = c.addr + c.pos;
	return c.is_truncated || !*n ? -ENOENT : 0;
}

static int find_fde(struct elf *elf, u64 addr, u64 *fde, u64 *start, u64 *size, u64 *lsda)
{
	u64 base, first, n, lo = 0, hi, mid, len;
	const u8 *entries;
	s32 entry[2];

	if (table(elf, &base, &first, &n))
		return -ENOENT;
	len = n * sizeof(entry);
	entries = elf__bytes(elf, first, &len);
	if (!entries)
		return -ENOENT;
	/* the last entry that starts at or before addr is in [lo, hi) */
	hi = len / sizeof(entry);
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		memcpy(entry, entries + mid * sizeof(entry), sizeof(entry));
		if (base + (u64)(s64)entry[0] <= addr)
			lo = mid;
		else
			hi = mid;
	}
	if (!hi)
		return -ENOENT;
	memcpy(entry, entries + lo * sizeof(entry), sizeof(entry));
	*fde = base + (u64)(s64)entry[1];
	if (read_fde(elf, *fde, start, size, lsda))
		return -ENOENT;
	return addr >= *start && addr - *start < *size ? 0 : -ENOENT;
}

int elf__function_at(struct elf *elf, u64 addr, u64 *start, u64 *size)
{
	u64 fde, lsda;

	return find_fde(elf, addr, &fde, start, size, &lsda);
}

int elf__find_fde(struct elf *elf, u64 addr, u64 *fde, u64 *start, u64 *size)
{
	u64 lsda;

	return find_fde(elf, addr, fde, start, size, &lsda);
}

#define LSDA_MAX (1 << 20) /* bytes of one function's LSDA */

/* Reads a number of the call-site table. */
static u64 get_number(struct cursor *c, u8 encoding)
{
	return (encoding & ENC_FORMAT) == 0x01 ? get_leb128(c) : get_encoded(c, encoding & ENC_FORMAT, false);
}

/* Layout: the exception handling tables of the Itanium C++ ABI, as GCC and clang write them. */
int elf__each_call_site(struct elf *elf, u64 addr, void (*fn)(u64 start, u64 size, u64 pad, void *arg), void *arg,
			bool *has)
{
	u64 fde, start, size, lsda, pads, length, end, from, len, pad;
	struct cursor c;
	u8 encoding;

	*has = false;
	if (find_fde(elf, addr, &fde, &start, &size, &lsda) || !lsda)
		return 0;
	*has = true;
	c = at(elf, lsda, LSDA_MAX);
	pads = start;
	encoding = get(&c, 1);
	if (encoding != ENC_NONE) {
		/* if this is 0, the offsets of landing pads are addresses */
		pads = (encoding & ENC_FORMAT) == 0x01 ? get_leb128(&c) : get_encoded(&c, encoding, true);
	}
	encoding = get(&c, 1);
	if (encoding != ENC_NONE)
		get_leb128(&c); /* end of the types table */
	encoding = get(&c, 1);
	length = get_leb128(&c);
	if (c.is_truncated || length > c.size - c.pos || encoding == ENC_NONE)
		return -ENOENT;
	for (end = c.pos + length; c.pos < end && !c.is_truncated;) {
		from = get_number(&c, encoding);
		len = get_number(&c, encoding);
		pad = get_number(&c, encoding);
		get_leb128(&c); /* action */
		if (!c.is_truncated)
			fn(start + from, len, pad ? pads + pad : 0, arg);
	}
	return c.is_truncated ? -ENOENT : 0;
}
