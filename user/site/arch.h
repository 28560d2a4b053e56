/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What placing a probe has to know of one machine instruction. A machine is a
 * file, arch_MACHINE.c; which one decodes is the ELF file's own affair, so an
 * arm64 file can be looked at on x86-64.
 */
#ifndef SONDE_SITE_ARCH_H
#define SONDE_SITE_ARCH_H

#include <capstone/capstone.h>

#include "core/types.h"

enum insn_kind {
	INSN_PLAIN, /* goes on to the next */
	INSN_COND, /* jumps to target or goes on */
	INSN_JUMP, /* to target */
	INSN_JUMP_INDIRECT,
	INSN_CALL, /* of target, and goes on */
	INSN_CALL_INDIRECT, /* target: the word that holds the address, 0 if that is not known */
	INSN_RET,
	INSN_STOP, /* traps: nothing comes after it */
};

/* What becomes of the stack pointer or the frame pointer. */
enum reg_effect {
	REG_SAME,
	REG_ADD, /* += by */
	REG_FROM_SP, /* = stack pointer as it was + by */
	REG_FROM_BP, /* = frame pointer as it was + by */
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
	bool emulated; /* the kernel does its work: a trap, and no single step */
	bool refused; /* the kernel takes no probe there, or it would break the program */
	u64 target; /* of what jumps or calls; 0: none or not known */
	struct reg_change sp, bp;
};

struct decoder;
struct jump_table;

struct arch {
	u16 machine; /* EM_... */
	cs_arch cs_arch;
	cs_mode cs_mode;
	u8 ret_slot; /* bytes that a call puts on the stack for its return */
	/* Fills out from what capstone made of the bytes. */
	void (*classify)(const cs_insn *cs, struct insn *out);
	/*
	 * May a probe be moved from before this instruction to behind it? It keeps the registers that arguments
	 * come in, the stack pointer and memory as they are.
	 */
	bool (*keeps_arguments)(csh handle, const cs_insn *cs);
	/* Where the targets of an indirect jump stand, see struct jump_table. back[0] is the jump, back[n - 1] the oldest. */
	bool (*jump_table)(const cs_insn *const *back, u32 n, struct jump_table *out);
};

/* Targets are base + entry; entry is of size bytes, signed if it has 4 of them or fewer. */
struct jump_table {
	u64 addr;
	u64 base; /* 0: entries are addresses */
	u8 entry_size;
	u32 n; /* 0: not known */
};

extern const struct arch arch_x86_64, arch_arm64;

/* NULL: no memory, or a machine that is not known. */
struct decoder *decoder__new(u16 machine);
void decoder__free(struct decoder *d);
const struct arch *decoder__arch(const struct decoder *d);
/* The instruction at the start of code, which stands at addr. false: it can't be decoded. */
bool decoder__insn(struct decoder *d, const u8 *code, u64 len, u64 addr, struct insn *out);
/* Of the instruction decoded last. */
bool decoder__keeps_arguments(struct decoder *d);
/* Its text, for people; lives until the next is decoded. */
const char *decoder__text(struct decoder *d, char *buf, size_t len);
/* The targets of an indirect jump by the instructions that lead to it (see struct arch). false: not a pattern that is known. */
bool decoder__jump_table(struct decoder *d, const u8 *const *code, const u64 *addrs, u32 n, struct jump_table *out);

#endif
