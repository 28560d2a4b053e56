/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files that find the GIL's probe sites in a binary. */
#pragma once

#include "gil_find.h"

#define TARGETS_MAX 16

/* The possible targets of a call of a function: code addresses, and addresses of pointers to it. */
struct targets {
	u64 code[TARGETS_MAX];
	u32 n_code;
	u64 slots[TARGETS_MAX];
	u32 n_slots;
};

/* Returns false if no call of the function is possible in this object. */
bool targets__of(struct targets *t, struct elf *elf, const char *name);
/* The length of the call of one of the targets at p; 0: there is no such call. */
u32 targets__call_at(const struct targets *t, const u8 *p, u64 left, u64 addr);
/*
 * The jump that tests whether the result of a call that returns to addr is `value`; 0: there is none. The result is
 * still in eax there.
 */
u64 gil_find__jump(const u8 *code, u64 left, u64 addr, s64 value);
/*
 * Does an instruction begin at addr? Decodes the function from its start. If no unwind table has the function, returns
 * true.
 */
bool gil_find__is_instruction(struct elf *elf, u64 addr);
