/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files that find the GIL's probe sites in a binary share. */
#ifndef SONDE_GIL_FIND_PRIVATE_H
#define SONDE_GIL_FIND_PRIVATE_H

#include "gil_find.h"

#define TARGETS_MAX 16

/* What a call of a function can go to: code addresses, and words that hold its address. */
struct targets {
	u64 code[TARGETS_MAX];
	u32 n_code;
	u64 slots[TARGETS_MAX];
	u32 n_slots;
};

/* false: the object has no call of it. */
bool targets__of(struct targets *t, struct elf *elf, const char *name);
/* Is there a call of one of the targets at p? Its length, 0 if not. */
u32 targets__call_at(const struct targets *t, const u8 *p, u64 left, u64 addr);
/*
 * The jump on whether the result of a call that returns to addr is `value`; 0: there
 * is none. The result is still in eax there.
 */
u64 gil_find__jump(const u8 *code, u64 left, u64 addr, s64 value);
/* Does an instruction begin at addr? Decodes its function from the start; true if there is no unwind table to say where that is. */
bool gil_find__is_instruction(struct elf *elf, u64 addr);

#endif
