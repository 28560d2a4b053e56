/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The properties of one machine instruction that placing a probe needs. */
#pragma once

#include <capstone/capstone.h>

#include "core/types.h"

enum insn_kind {
	INSN_PLAIN, /* continues at the next instruction */
	INSN_COND, /* jumps to target or continues */
	INSN_JUMP, /* jumps to target */
	INSN_JUMP_INDIRECT,
	INSN_CALL, /* calls target, then continues */
	INSN_CALL_INDIRECT, /* target: address of the pointer to the function; 0: unknown */
	INSN_RET,
	INSN_STOP, /* traps: execution does not continue */
};

/* The effect of an instruction on the stack pointer or the frame pointer. */
enum reg_effect {
	REG_SAME,
	REG_ADD, /* += by */
	REG_FROM_SP, /* = old stack pointer + by */
	REG_FROM_BP, /* = old frame pointer + by */
	REG_LOST,
};

struct reg_change {
	u8 effect; /* enum reg_effect */
	s32 by; /* bytes */
};

struct insn {
	u64 addr;
	u8 len;
	u8 kind; /* enum insn_kind */
	bool emulated; /* the kernel emulates it: one trap, without a single step */
	bool refused; /* the kernel accepts no probe there, or a probe would break the program */
	u64 target; /* of a jump or call; 0: none or unknown */
	struct reg_change sp, bp;
};

struct decoder;

/* The targets are base + entry; an entry has `size` bytes, and is signed if that is 4 or less. */
struct jump_table {
	u64 addr;
	u64 base; /* 0: the entries are addresses */
	u8 entry_size;
	u32 n; /* number of entries; 0: unknown */
};

/* NULL: no memory. */
struct decoder *decoder__new(void);
void decoder__free(struct decoder *d);
/* Decodes the instruction at the start of code, whose address is addr. false: it can't be decoded. */
bool decoder__insn(struct decoder *d, const u8 *code, u64 len, u64 addr, struct insn *out);
/* As x86__keeps_arguments, for the instruction decoded last. */
bool decoder__keeps_arguments(struct decoder *d);
/* The text of that instruction; valid until the next one is decoded. */
const char *decoder__text(struct decoder *d, char *buf, size_t len);
/*
 * The table of an indirect jump, from the instructions that lead to it (see x86__jump_table). false: the pattern is
 * unknown.
 */
bool decoder__jump_table(struct decoder *d, const u8 *const *code, const u64 *addrs, u32 n, struct jump_table *out);
