/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The properties of one machine instruction that placing a probe needs. Each machine is a file, arch_MACHINE.c. The
 * ELF file decides which one decodes, so the functions of an arm64 file can be listed on x86-64.
 */
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
struct jump_table;

struct arch {
	u16 machine; /* EM_... */
	cs_arch cs_arch;
	cs_mode cs_mode;
	u8 ret_slot; /* bytes that a call pushes on the stack for its return */
	/* Fills out from the instruction that capstone decoded. */
	void (*classify)(const cs_insn *cs, struct insn *out);
	/*
	 * May a probe be moved from before this instruction to after it? True if the instruction changes neither the
	 * argument registers nor the stack pointer nor memory.
	 */
	bool (*keeps_arguments)(csh handle, const cs_insn *cs);
	/*
	 * Finds the table of an indirect jump, see struct jump_table. back[0] is the jump, back[n - 1] the oldest
	 * instruction.
	 */
	bool (*jump_table)(const cs_insn *const *back, u32 n, struct jump_table *out);
};

/* The targets are base + entry; an entry has `size` bytes, and is signed if that is 4 or less. */
struct jump_table {
	u64 addr;
	u64 base; /* 0: the entries are addresses */
	u8 entry_size;
	u32 n; /* number of entries; 0: unknown */
};

extern const struct arch arch_x86_64, arch_arm64;

/* NULL: no memory, or an unsupported machine. */
struct decoder *decoder__new(u16 machine);
void decoder__free(struct decoder *d);
/* Decodes the instruction at the start of code, whose address is addr. false: it can't be decoded. */
bool decoder__insn(struct decoder *d, const u8 *code, u64 len, u64 addr, struct insn *out);
/* As arch.keeps_arguments, for the instruction decoded last. */
bool decoder__keeps_arguments(struct decoder *d);
/* The text of that instruction; valid until the next one is decoded. */
const char *decoder__text(struct decoder *d, char *buf, size_t len);
/*
 * The table of an indirect jump, from the instructions that lead to it (see struct arch). false: the pattern is
 * unknown.
 */
bool decoder__jump_table(struct decoder *d, const u8 *const *code, const u64 *addrs, u32 n, struct jump_table *out);
