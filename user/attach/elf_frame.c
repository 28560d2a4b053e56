// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions by their unwind tables, which survive stripping: .eh_frame_hdr is a
 * sorted array of (start, description), and a description (FDE) holds the
 * function's size. Layout: Linux Standard Base, "Exception Frames"; only the
 * encodings that linkers write are understood.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf_private.h"

#define ENC_UDATA4 0x03 /* DW_EH_PE_udata4 */
#define ENC_TABLE  0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define ENC_PCREL  0x10
#define ENC_FORMAT 0x0f
#define ENC_APPLY  0x70

struct cursor {
	const u8 *data;
	u64 addr; /* of data */
	u64 size;
	u64 pos;
	bool bad;
};

/* What stands at addr, at most `want` bytes of it. */
static struct cursor at(struct elf *elf, u64 addr, u64 want)
{
	struct cursor c = { .addr = addr, .size = want };

	c.data = elf__bytes(elf, addr, &c.size);
	c.bad = !c.data;
	return c;
}

static u64 get(struct cursor *c, u32 bytes)
{
	u64 v = 0;

	if (c->bad || c->size - c->pos < bytes) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->data + c->pos, bytes);
	c->pos += bytes;
	return v;
}

static u64 get_leb128(struct cursor *c)
{
	u64 v = 0, byte;
	u32 shift = 0;

	do {
		byte = get(c, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !c->bad);
	return v;
}

/* A pointer as the encoding says; `relative` is false for a length, which has the same format. */
static u64 get_encoded(struct cursor *c, u8 encoding, bool relative)
{
	u64 here = c->addr + c->pos, v;

	switch (encoding & ENC_FORMAT) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		v = get(c, 8);
		break;
	case 0x03: /* udata4 */
		v = get(c, 4);
		break;
	case 0x0b: /* sdata4; as a length it is not negative */
		v = get(c, 4);
		if (relative)
			v = (u64)(s64)(s32)v;
		break;
	default:
		c->bad = true;
		return 0;
	}
	if (!relative)
		return v;
	if ((encoding & ENC_APPLY) == ENC_PCREL)
		return v + here;
	if (encoding & ENC_APPLY)
		c->bad = true;
	return v;
}

/* How the FDEs of a CIE encode their addresses. */
static int cie_encoding(struct elf *elf, u64 addr, u8 *encoding)
{
	struct cursor c = at(elf, addr, 256);
	const char *aug;
	u64 version;

	get(&c, 4); /* length */
	if (get(&c, 4)) /* a CIE has id 0 */
		return -ENOENT;
	version = get(&c, 1);
	if (c.bad || !memchr(c.data + c.pos, 0, c.size - c.pos))
		return -ENOENT;
	aug = (const char *)c.data + c.pos;
	c.pos += strlen(aug) + 1;
	get_leb128(&c); /* code alignment */
	get_leb128(&c); /* data alignment, signed, but only its end matters */
	if (version == 1)
		get(&c, 1);
	else
		get_leb128(&c); /* return address column */
	*encoding = 0;
	if (*aug++ != 'z')
		return c.bad ? -ENOENT : 0;
	get_leb128(&c); /* length of what follows */
	for (; *aug && !c.bad; aug++) {
		u8 enc;

		switch (*aug) {
		case 'R':
			*encoding = get(&c, 1);
			return c.bad ? -ENOENT : 0;
		case 'P':
			enc = get(&c, 1);
			get_encoded(&c, enc & ENC_FORMAT, false);
			break;
		case 'L':
			get(&c, 1);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -ENOENT;
		}
	}
	return c.bad ? -ENOENT : 0;
}

static int read_fde(struct elf *elf, u64 addr, u64 *start, u64 *size)
{
	struct cursor c = at(elf, addr, 64);
	u64 length, back, here;
	u8 encoding;

	length = get(&c, 4);
	if (length < 8 || length == 0xffffffff)
		return -ENOENT;
	here = c.addr + c.pos;
	back = get(&c, 4);
	if (c.bad || !back || back > here || cie_encoding(elf, here - back, &encoding))
		return -ENOENT;
	*start = get_encoded(&c, encoding, true);
	*size = get_encoded(&c, encoding, false);
	return c.bad ? -ENOENT : 0;
}

/* The sorted table: its first entry's address and how many there are; *base is what its numbers are relative to. */
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
	get_encoded(&c, ptr_enc & ENC_FORMAT, false); /* where .eh_frame is */
	if (c.bad || fde_enc != ENC_UDATA4 || table_enc != ENC_TABLE)
		return -ENOENT;
	*n = get(&c, 4);
	*first = c.addr + c.pos;
	return c.bad || !*n ? -ENOENT : 0;
}

int elf__function_at(struct elf *elf, u64 addr, u64 *start, u64 *size)
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
	/* the last entry that starts at or before addr lies in [lo, hi) */
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
	if (read_fde(elf, base + (u64)(s64)entry[1], start, size))
		return -ENOENT;
	return addr >= *start && addr - *start < *size ? 0 : -ENOENT;
}
