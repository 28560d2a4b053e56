/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads numbers of unwind tables, whose contents are untrusted. For elf_frame.c and elf_unwind.c. */
#pragma once

#include <string.h>

#include "elf/elf_private.h"

#define ENC_UDATA4 0x03 /* DW_EH_PE_udata4 */
#define ENC_TABLE  0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define ENC_PCREL  0x10
#define ENC_FORMAT 0x0f
#define ENC_APPLY  0x70
#define ENC_NONE   0xff /* DW_EH_PE_omit */

struct cursor {
	const u8 *data;
	u64 addr; /* of the data */
	u64 size;
	u64 pos;
	bool is_truncated;
};

/* A cursor over at most `want` bytes at addr. */
static inline struct cursor at(struct elf *elf, u64 addr, u64 want)
{
	struct cursor c = { .addr = addr, .size = want };

	c.data = elf__bytes(elf, addr, &c.size);
	c.is_truncated = !c.data;
	return c;
}

static inline u64 get(struct cursor *c, u32 bytes)
{
	u64 v = 0;

	if (c->is_truncated || c->size - c->pos < bytes) {
		c->is_truncated = true;
		return 0;
	}
	memcpy(&v, c->data + c->pos, bytes);
	c->pos += bytes;
	return v;
}

/* Reads a number of 7 bits a byte; *sign gets what a signed one has above its bits, 0 or ones. */
static inline u64 get_leb128_bits(struct cursor *c, u64 *sign)
{
	u64 v = 0, byte;
	u32 shift = 0;

	do {
		byte = get(c, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !c->is_truncated);
	*sign = shift < 64 && (byte & 0x40) ? ~0ULL << shift : 0;
	return v;
}

static inline u64 get_leb128(struct cursor *c)
{
	u64 sign;

	return get_leb128_bits(c, &sign);
}

static inline s64 get_sleb128(struct cursor *c)
{
	u64 sign, v = get_leb128_bits(c, &sign);

	return (s64)(v | sign);
}

/* Reads a pointer in this encoding; `relative` is false for a length, which has the same format. */
static inline u64 get_encoded(struct cursor *c, u8 encoding, bool relative)
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
	case 0x0b: /* sdata4; a length is never negative */
		v = get(c, 4);
		if (relative)
			v = (u64)(s64)(s32)v;
		break;
	default:
		c->is_truncated = true;
		return 0;
	}
	if (!relative)
		return v;
	if ((encoding & ENC_APPLY) == ENC_PCREL)
		return v + here;
	if (encoding & ENC_APPLY)
		c->is_truncated = true;
	return v;
}

/*
 * The address of the frame description entry (FDE) of the function around addr, and the range of its code. Returns 0
 * or -ENOENT.
 */
int elf__find_fde(struct elf *elf, u64 addr, u64 *fde, u64 *start, u64 *size);
