// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * x86-64. The kernel emulates (arch/x86/kernel/uprobes.c, branch_setup_xol_ops() and push_setup_xol_ops(), Linux 6.1
 * to 6.18): push of a register, one-byte nop, call and jmp to an immediate address, jcc. Some 6.1 kernels refuse nops
 * with prefixes, and longer nops are emulated only since 6.17, so neither is classified as emulated. uprobe_init_insn()
 * refuses instructions with a lock prefix or a segment prefix other than fs and gs.
 */
#include "site/x86.h"

#include "util/array.h"

/* What a program reads at an entry: the arguments and the stack pointer. */
static bool is_argument(u16 reg)
{
	return IS_ONE_OF(reg, X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, X86_REG_RSI, X86_REG_ESI, X86_REG_SI,
			 X86_REG_SIL, X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH, X86_REG_RCX,
			 X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH, X86_REG_R8, X86_REG_R8D, X86_REG_R8W,
			 X86_REG_R8B, X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B, X86_REG_RSP, X86_REG_ESP,
			 X86_REG_SP, X86_REG_SPL);
}

struct shape { /* prefixes and opcode */
	const u8 *op;
	u32 left; /* bytes from the opcode on */
	u8 rex;
	bool operand_size; /* prefix 66 */
	bool refused; /* has a prefix that uprobes refuse */
	bool prefixed;
};

static struct shape shape_of(const cs_insn *cs)
{
	struct shape s = { .op = cs->bytes, .left = cs->size };

	for (; s.left > 1; s.op++, s.left--) {
		switch (*s.op) {
		case 0x66:
			s.operand_size = true;
			s.prefixed = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0:
			s.refused = true;
			s.prefixed = true;
			continue;
		case 0x64:
		case 0x65:
		case 0x67:
		case 0xf2:
		case 0xf3:
			s.prefixed = true;
			continue;
		}
		break;
	}
	if (s.left > 1 && (*s.op & 0xf0) == 0x40) {
		s.rex = *s.op++;
		s.left--;
	}
	return s;
}

static u64 immediate(const cs_insn *cs)
{
	const cs_x86 *x = &cs->detail->x86;

	return x->op_count == 1 && x->operands[0].type == X86_OP_IMM ? (u64)x->operands[0].imm : 0;
}

static bool is_jcc(const struct shape *s)
{
	return (s->op[0] >= 0x70 && s->op[0] <= 0x7f) ||
	       (s->left > 1 && s->op[0] == 0x0f && s->op[1] >= 0x80 && s->op[1] <= 0x8f);
}

static void classify_group5(const cs_insn *cs, const struct shape *s, struct insn *out)
{
	const cs_x86_op *op = &cs->detail->x86.operands[0];
	u8 reg = s->left > 1 ? s->op[1] >> 3 & 7 : 0;

	if (reg == 4)
		out->kind = INSN_JUMP_INDIRECT;
	else if (reg == 2)
		out->kind = INSN_CALL_INDIRECT;
	else if (reg == 3 || reg == 5)
		out->kind = INSN_STOP; /* far */
	else
		return;
	if (cs->detail->x86.op_count == 1 && op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP &&
	    op->mem.index == X86_REG_INVALID && op->mem.segment == X86_REG_INVALID)
		out->target = cs->address + cs->size + (u64)op->mem.disp;
}

static void classify_flow(const cs_insn *cs, const struct shape *s, struct insn *out)
{
	bool plain = !s->operand_size && !s->refused;

	switch (s->op[0]) {
	case 0xe8:
		out->kind = INSN_CALL;
		out->emulated = plain;
		break;
	case 0xe9:
	case 0xeb:
		out->kind = INSN_JUMP;
		out->emulated = plain;
		break;
	case 0xe0 ... 0xe3: /* loop, jrcxz */
		out->kind = INSN_COND;
		break;
	case 0xc2:
	case 0xc3:
		out->kind = INSN_RET;
		break;
	case 0xca:
	case 0xcb:
	case 0xcf: /* far returns */
	case 0xcc:
	case 0xf4:
		out->kind = INSN_STOP;
		out->refused = true;
		break;
	case 0xff:
		classify_group5(cs, s, out);
		return;
	case 0x90:
		out->emulated = !s->prefixed && !s->rex;
		return;
	case 0x0f:
		if (s->left > 1 && (s->op[1] == 0x0b || s->op[1] == 0xb9 || s->op[1] == 0xff)) {
			out->kind = INSN_STOP; /* ud2, ud1, ud0 */
			out->refused = true;
			return;
		}
		/* fallthrough */
	default:
		if (!is_jcc(s))
			return;
		out->kind = INSN_COND;
		out->emulated = plain;
	}
	/* the kernel refuses a branch with an operand size prefix */
	out->refused |= s->operand_size;
	out->target = immediate(cs);
}

/* A value computed from the stack or frame pointer: `lea d(%rsp)`, `mov %rbp`. */
static struct reg_change made_from(const cs_insn *cs)
{
	const cs_x86_op *from = &cs->detail->x86.operands[1];
	struct reg_change lost = { .effect = REG_LOST };
	u16 reg = X86_REG_INVALID;
	s64 by = 0;

	if (cs->detail->x86.op_count != 2)
		return lost;
	if (cs->id == X86_INS_LEA && from->type == X86_OP_MEM && from->mem.index == X86_REG_INVALID) {
		reg = from->mem.base;
		by = from->mem.disp;
	} else if (cs->id == X86_INS_MOV && from->type == X86_OP_REG) {
		reg = from->reg;
	}
	if (by != (s32)by)
		return lost;
	if (reg == X86_REG_RSP)
		return (struct reg_change){ REG_FROM_SP, by };
	if (reg == X86_REG_RBP)
		return (struct reg_change){ REG_FROM_BP, by };
	return lost;
}

static struct reg_change arithmetic(const cs_insn *cs)
{
	const cs_x86_op *op = &cs->detail->x86.operands[1];

	if (cs->detail->x86.op_count == 2 && op->type == X86_OP_IMM && op->imm == (s32)op->imm &&
	    op->imm != INT32_MIN) {
		if (cs->id == X86_INS_ADD)
			return (struct reg_change){ REG_ADD, op->imm };
		if (cs->id == X86_INS_SUB)
			return (struct reg_change){ REG_ADD, -op->imm };
	}
	return made_from(cs);
}

static void track(const cs_insn *cs, const struct shape *s, struct insn *out)
{
	const cs_x86 *x = &cs->detail->x86;
	u8 i;

	switch (cs->id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHFQ:
		out->sp = (struct reg_change){ s->operand_size ? REG_LOST : REG_ADD, -8 };
		return;
	case X86_INS_POP:
	case X86_INS_POPFQ:
		out->sp = (struct reg_change){ s->operand_size ? REG_LOST : REG_ADD, 8 };
		break;
	case X86_INS_LEAVE:
		out->sp = (struct reg_change){ REG_FROM_BP, 8 };
		out->bp.effect = REG_LOST;
		return;
	case X86_INS_ENTER:
		out->sp.effect = out->bp.effect = REG_LOST;
		return;
	}
	for (i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];
		struct reg_change change = { .effect = REG_LOST };

		if (op->type != X86_OP_REG || !(op->access & CS_AC_WRITE))
			continue;
		if (!i && cs->id != X86_INS_POP)
			change = arithmetic(cs);
		if (op->reg == X86_REG_RSP || op->reg == X86_REG_ESP || op->reg == X86_REG_SP || op->reg == X86_REG_SPL)
			out->sp = change;
		if (op->reg == X86_REG_RBP || op->reg == X86_REG_EBP || op->reg == X86_REG_BP || op->reg == X86_REG_BPL)
			out->bp = change;
	}
}

void x86__classify(const cs_insn *cs, struct insn *out)
{
	struct shape s = shape_of(cs);

	out->refused = s.refused;
	classify_flow(cs, &s, out);
	/* push of a register, with no prefix except the one for r8 to r15 */
	if (s.op[0] >= 0x50 && s.op[0] <= 0x57 && !s.prefixed)
		out->emulated = cs->size == 1 || (cs->size == 2 && s.rex == 0x41);
	track(cs, &s, out);
}

bool x86__keeps_arguments(csh handle, const cs_insn *cs)
{
	const cs_x86 *x = &cs->detail->x86;
	u8 n_read, n_write, i;
	cs_regs read, write;

	/* endbr64 only marks a valid branch target, and execution has passed it when the probe runs */
	if (cs->id == X86_INS_ENDBR64 || cs->id == X86_INS_NOP)
		return true;
	/* these involve the kernel or another privilege level */
	if (cs->id == X86_INS_SYSCALL || cs->id == X86_INS_INT || cs->id == X86_INS_CPUID)
		return false;
	if (cs_regs_access(handle, cs, read, &n_read, write, &n_write))
		return false;
	for (i = 0; i < n_write; i++)
		if (is_argument(write[i]))
			return false;
	for (i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].access & CS_AC_WRITE)
			return false;
	/* only instructions whose effects their operands show: no string instructions, no x87 */
	return IS_ONE_OF(cs->id, X86_INS_TEST, X86_INS_CMP, X86_INS_MOV, X86_INS_MOVABS, X86_INS_MOVZX, X86_INS_MOVSX,
			 X86_INS_MOVSXD, X86_INS_LEA, X86_INS_XOR, X86_INS_AND, X86_INS_OR, X86_INS_ADD, X86_INS_SUB,
			 X86_INS_BT, X86_INS_SHL, X86_INS_SHR, X86_INS_SAR, X86_INS_NEG, X86_INS_NOT);
}

/* The 64-bit register that contains a smaller one. */
static u16 whole_register(u16 reg)
{
#define LEGACY(l)                         \
	{ X86_REG_E##l, X86_REG_R##l },   \
	{                                 \
		X86_REG_##l, X86_REG_R##l \
	}
#define LETTER(l)                               \
	LEGACY(l##X),                           \
	{                                       \
		X86_REG_##l##L, X86_REG_R##l##X \
	}
#define NUMBERED(n)                                                           \
	{ X86_REG_R##n##D, X86_REG_R##n }, { X86_REG_R##n##W, X86_REG_R##n }, \
	{                                                                     \
		X86_REG_R##n##B, X86_REG_R##n                                 \
	}
	static const u16 parts[][2] = {
		LETTER(A),    LETTER(B),    LETTER(C),	  LETTER(D),	LEGACY(SI),
		LEGACY(DI),   LEGACY(BP),   NUMBERED(8),  NUMBERED(9),	NUMBERED(10),
		NUMBERED(11), NUMBERED(12), NUMBERED(13), NUMBERED(14), NUMBERED(15),
	};

	for (u32 i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i][0] == reg)
			return parts[i][1];
	return reg;
}

/* The newest instruction that writes the register, searched from `at` towards older ones; n: none. */
static u32 find_write(const cs_insn *const *back, u32 n, u32 at, u16 reg)
{
	for (; at < n; at++) {
		const cs_x86 *x = &back[at]->detail->x86;

		for (u8 i = 0; i < x->op_count; i++)
			if (x->operands[i].type == X86_OP_REG && x->operands[i].access & CS_AC_WRITE &&
			    whole_register(x->operands[i].reg) == reg)
				return at;
	}
	return n;
}

static const cs_x86_op *operand(const cs_insn *cs, x86_op_type type)
{
	const cs_x86 *x = &cs->detail->x86;

	for (u8 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == type)
			return &x->operands[i];
	return NULL;
}

/* The number of table entries: `cmp $last,index; ja elsewhere` before the jump. */
static u32 bound(const cs_insn *const *back, u32 n, u32 at, u16 index)
{
	for (; at + 1 < n; at++) {
		const cs_x86_op *imm, *reg;
		u32 cmp;

		if (back[at]->id != X86_INS_JA && back[at]->id != X86_INS_JBE)
			continue;
		for (cmp = at + 1; cmp < n && cmp < at + 4; cmp++) {
			imm = operand(back[cmp], X86_OP_IMM);
			reg = operand(back[cmp], X86_OP_REG);
			if (back[cmp]->id == X86_INS_CMP && imm && reg && whole_register(reg->reg) == index &&
			    imm->imm >= 0 && imm->imm < 4096)
				return imm->imm + 1;
		}
		return 0;
	}
	return 0;
}

bool x86__jump_table(const cs_insn *const *back, u32 n, struct jump_table *out)
{
	const cs_x86_op *op = back[0]->detail->x86.op_count == 1 ? &back[0]->detail->x86.operands[0] : NULL;
	const cs_x86_op *mem;
	u32 add, load, lea;
	u16 reg;

	if (!op)
		return false;
	/* jmp *table(,%index,8), in code with fixed addresses */
	if (op->type == X86_OP_MEM && op->mem.base == X86_REG_INVALID && op->mem.index != X86_REG_INVALID &&
	    op->mem.scale == 8 && op->mem.disp > 0) {
		out->addr = op->mem.disp;
		out->entry_size = 8;
		out->n = bound(back, n, 1, whole_register(op->mem.index));
		return true;
	}
	if (op->type != X86_OP_REG)
		return false;
	/* lea table(%rip),%t; movslq (%t,%index,4),%o; add %t,%o; jmp *%o */
	reg = op->reg;
	add = find_write(back, n, 1, reg);
	if (add == n || back[add]->id != X86_INS_ADD || back[add]->detail->x86.op_count != 2)
		return false;
	load = find_write(back, n, add + 1, reg);
	if (load < n && back[load]->id == X86_INS_LEA) {
		/* add %o,%t; jmp *%t */
		op = &back[add]->detail->x86.operands[1];
		if (op->type != X86_OP_REG)
			return false;
		load = find_write(back, n, add + 1, op->reg);
	}
	if (load == n || back[load]->id != X86_INS_MOVSXD)
		return false;
	mem = operand(back[load], X86_OP_MEM);
	if (!mem || mem->mem.scale != 4 || mem->mem.index == X86_REG_INVALID || mem->mem.disp)
		return false;
	lea = find_write(back, n, load + 1, mem->mem.base);
	if (lea == n || back[lea]->id != X86_INS_LEA)
		return false;
	out->n = bound(back, n, load + 1, whole_register(mem->mem.index));
	mem = operand(back[lea], X86_OP_MEM);
	if (!mem || mem->mem.base != X86_REG_RIP || mem->mem.index != X86_REG_INVALID)
		return false;
	out->addr = out->base = back[lea]->address + back[lea]->size + (u64)mem->mem.disp;
	out->entry_size = 4;
	return true;
}
