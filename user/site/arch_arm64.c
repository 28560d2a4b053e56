// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * arm64. The kernel simulates (arch/arm64/kernel/probes/decode-insn.c, arm_probe_decode_insn(), Linux 6.1 to 6.18):
 * b, bl, b.cond, cbz, tbz, br, blr, ret, adr, adrp and loads of a literal. A nop is simulated only since 6.13, so it is
 * not classified as emulated. The kernel refuses instructions that neither that function nor
 * aarch64_insn_is_steppable() accepts: system calls, exclusives, branches with pointer authentication, and hints other
 * than nop, bti and pointer signing.
 */
#include <elf.h>

#include "site/arch.h"
#include "util/array.h"

static u32 word_of(const cs_insn *cs)
{
	return cs->bytes[0] | cs->bytes[1] << 8 | cs->bytes[2] << 16 | (u32)cs->bytes[3] << 24;
}

static u64 relative(const cs_insn *cs, u32 field, u32 bits)
{
	u64 value = field & ((1u << bits) - 1);

	if (value >> (bits - 1))
		value |= ~0ULL << bits;
	return cs->address + (value << 2);
}

/* xpaclri, pointer signing with x16 and x17, zero or sp; bti and nop */
static bool steppable_hint(u32 w)
{
	u32 hint = w >> 5 & 0x7f;

	return !hint || hint == 7 || hint == 8 || hint == 10 || hint == 12 || hint == 14 ||
	       (hint >= 24 && hint <= 31) || hint == 32 || hint == 34 || hint == 36 || hint == 38;
}

static void classify_register_branch(u32 w, struct insn *out)
{
	u32 op = w >> 21 & 7;

	out->kind = op == 0 ? INSN_JUMP_INDIRECT : op == 1 ? INSN_CALL_INDIRECT : op == 2 ? INSN_RET : INSN_STOP;
	/* branches without pointer authentication */
	out->emulated = (w & 0xff9ffc1f) == 0xd61f0000 && op <= 2;
	out->refused = !out->emulated;
}

static void classify_system(u32 w, struct insn *out)
{
	if ((w & 0xff000000) == 0xd4000000) { /* svc, hvc, smc; brk, hlt and debug exceptions */
		out->kind = (w & 0xffe0001c) == 0xd4000000 ? INSN_PLAIN : INSN_STOP;
		out->refused = true;
	} else if ((w & 0xfffff01f) == 0xd503201f) {
		out->refused = !steppable_hint(w);
	} else if ((w & 0xfff8f01f) == 0xd500401f || (w & 0xfff00000) == 0xd5100000) { /* msr */
		out->refused = true;
	}
}

static void classify_flow(const cs_insn *cs, u32 w, struct insn *out)
{
	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		out->kind = w >> 31 ? INSN_CALL : INSN_JUMP;
		out->target = relative(cs, w, 26);
		out->emulated = true;
	} else if ((w & 0xff000000) == 0x54000000) { /* b.cond, bc.cond */
		out->kind = INSN_COND;
		out->target = relative(cs, w >> 5, 19);
		out->emulated = !(w & 0x10);
		out->refused = !out->emulated;
	} else if ((w & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		out->kind = INSN_COND;
		out->target = relative(cs, w >> 5, 19);
		out->emulated = true;
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		out->kind = INSN_COND;
		out->target = relative(cs, w >> 5, 14);
		out->emulated = true;
	} else if ((w & 0xfe000000) == 0xd6000000) {
		classify_register_branch(w, out);
	} else if ((w & 0xfe000000) == 0xd4000000) {
		classify_system(w, out);
	} else if (!(w >> 16)) { /* udf */
		out->kind = INSN_STOP;
		out->refused = true;
	} else if ((w & 0x1f000000) == 0x10000000) { /* adr, adrp */
		out->emulated = true;
	} else if ((w & 0xbf000000) == 0x18000000 || (w & 0xff000000) == 0x98000000) { /* ldr, ldrsw of a literal */
		out->emulated = true;
	} else if ((w & 0x3b000000) == 0x18000000 || (w & 0x3f800000) == 0x08000000) {
		out->refused = true; /* other literals, exclusives */
	}
}

static s32 scaled(u32 w, u32 at, u32 bits, u32 scale)
{
	u32 value = w >> at & ((1u << bits) - 1);

	return (s32)(value >> (bits - 1) ? value - (1u << bits) : value) * (s32)scale;
}

/* The change of the stack pointer by pushes and pops with an immediate write-back; 0: none. */
static s32 write_back(u32 w)
{
	u32 pair = w & 0xffc003e0, single = w & 0xffe00fe0;

	if (pair == 0xa98003e0 || pair == 0xa8c003e0 || pair == 0x6d8003e0 || pair == 0x6cc003e0)
		return scaled(w, 15, 7, 8);
	if (pair == 0xad8003e0 || pair == 0xacc003e0)
		return scaled(w, 15, 7, 16);
	if (single == 0xf8000fe0 || single == 0xf84007e0 || single == 0xfc000fe0 || single == 0xfc4007e0)
		return scaled(w, 12, 9, 1);
	return 0;
}

/* add and sub of an immediate between the stack pointer (31) and the frame pointer (29). */
static bool arithmetic(u32 w, struct insn *out)
{
	u32 rd = w & 31, rn = w >> 5 & 31;
	struct reg_change change;
	s32 by;

	if ((w & 0xbf800000) != 0x91000000 || (rd != 31 && rd != 29) || (rn != 31 && rn != 29))
		return false;
	by = (s32)((w >> 10 & 0xfff) << (w & 0x400000 ? 12 : 0));
	if (w & 0x40000000)
		by = -by;
	change.effect = rd == rn ? REG_ADD : rn == 31 ? REG_FROM_SP : REG_FROM_BP;
	change.by = by;
	*(rd == 31 ? &out->sp : &out->bp) = change;
	return true;
}

static void track(const cs_insn *cs, u32 w, struct insn *out)
{
	const cs_arm64 *a = &cs->detail->arm64;
	u8 i;

	if (arithmetic(w, out))
		return;
	if (write_back(w))
		out->sp = (struct reg_change){ REG_ADD, write_back(w) };
	else if (a->writeback)
		for (i = 0; i < a->op_count; i++)
			if (a->operands[i].type == ARM64_OP_MEM && a->operands[i].mem.base == ARM64_REG_SP)
				out->sp.effect = REG_LOST;
	for (i = 0; i < a->op_count; i++) {
		if (a->operands[i].type != ARM64_OP_REG || !(a->operands[i].access & CS_AC_WRITE))
			continue;
		if (a->operands[i].reg == ARM64_REG_SP || a->operands[i].reg == ARM64_REG_WSP)
			out->sp.effect = REG_LOST;
		if (a->operands[i].reg == ARM64_REG_X29 || a->operands[i].reg == ARM64_REG_W29)
			out->bp.effect = REG_LOST;
	}
}

static void classify(const cs_insn *cs, struct insn *out)
{
	u32 w = word_of(cs);

	classify_flow(cs, w, out);
	track(cs, w, out);
}

/* x0 to x7, x8 (address of a result), the return address, the stack pointer. */
static bool is_argument(u16 reg)
{
	return (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X8) || (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W8) ||
	       reg == ARM64_REG_X30 || reg == ARM64_REG_W30 || reg == ARM64_REG_SP || reg == ARM64_REG_WSP;
}

static bool keeps_arguments(csh handle, const cs_insn *cs)
{
	const cs_arm64 *a = &cs->detail->arm64;
	u32 w = word_of(cs);
	u8 n_read, n_write, i;
	cs_regs read, write;

	/* nop and bti; paciasp signs the return address, which a return probe must see unsigned */
	if ((w & 0xfffff01f) == 0xd503201f)
		return !(w >> 5 & 0x7f) || (w >> 5 & 0x79) == 0x20;
	if (a->writeback || cs_regs_access(handle, cs, read, &n_read, write, &n_write))
		return false;
	for (i = 0; i < n_write; i++)
		if (is_argument(write[i]))
			return false;
	return IS_ONE_OF(cs->id, ARM64_INS_CMP, ARM64_INS_CMN, ARM64_INS_TST, ARM64_INS_MOV, ARM64_INS_MOVZ,
			 ARM64_INS_MOVK, ARM64_INS_ADR, ARM64_INS_ADRP, ARM64_INS_ADD, ARM64_INS_SUB, ARM64_INS_AND,
			 ARM64_INS_ORR, ARM64_INS_EOR, ARM64_INS_LSL, ARM64_INS_LSR, ARM64_INS_UXTB, ARM64_INS_UBFX,
			 ARM64_INS_SXTW, ARM64_INS_LDR, ARM64_INS_LDRB, ARM64_INS_LDRH, ARM64_INS_LDRSW);
}

/* Compilers emit several forms, with entries of one, two and four bytes; none is supported yet. */
static bool jump_table(const cs_insn *const *back, u32 n, struct jump_table *out)
{
	return false;
}

const struct arch arch_arm64 = {
	.machine = EM_AARCH64,
	.cs_arch = CS_ARCH_ARM64,
	.cs_mode = CS_MODE_ARM,
	.ret_slot = 0,
	.classify = classify,
	.keeps_arguments = keeps_arguments,
	.jump_table = jump_table,
};
