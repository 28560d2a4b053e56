// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds where CPython takes and drops the GIL, for --gil=full. Its source has
 *
 *	take_gil:	gil->locked = 1; ... ++gil->switch_number; ... pthread_cond_signal(&gil->switch_cond)
 *	drop_gil:	gil->locked = 0; ... pthread_cond_signal(&gil->cond); ...
 *			pthread_cond_wait(&gil->switch_cond, &gil->switch_mutex)
 *
 * and on Linux no other call of pthread_cond_signal. So the argument of each such call is compared with the stores
 * shortly before it, by the offsets of struct _gil_runtime_state (3.7 to 3.15). A store of 0 at 16 bytes before the
 * argument is `locked` before `cond`: a drop. A store of 1 at 104 bytes, or an increment at 96 bytes before it, is
 * `locked` or `switch_number` before `switch_cond`: the GIL is taken. The function is decoded from its start. A call
 * that matches neither is counted, not guessed.
 */
#include <capstone/capstone.h>
#include <string.h>

#include "gil_find_private.h"
#include "util/array.h"

/* Instructions before a call that are considered; compilers put at most a dozen between the store and the call. */
#define WINDOW 32

#define LOCKED_TO_COND	 16
#define LOCKED_TO_SWITCH 104
#define NUMBER_TO_SWITCH 96

enum fact_kind {
	FACT_NONE,
	FACT_ADDRESS, /* to = base + disp */
	FACT_STORE, /* stores value at base + disp */
	FACT_INCREMENT, /* increments the memory at base + disp */
	FACT_SPILL, /* stores `from` on the stack at disp */
	FACT_FILL, /* loads `to` from the stack at disp */
};

/* The relevant effect of an instruction. Registers are numbered from 1; 0: none, the address is absolute. */
struct fact {
	enum fact_kind kind;
	u8 to, from, base; /* registers */
	s64 disp;
	s64 value; /* FACT_STORE */
	u32 writes; /* registers, a bit each */
};

struct history {
	struct fact facts[WINDOW]; /* ring buffer */
	u32 n; /* number of facts ever added */
};

static const struct {
	u16 wide, narrow;
} registers[] = {
	{ 0, 0 },
	{ X86_REG_RAX, X86_REG_EAX },
	{ X86_REG_RCX, X86_REG_ECX },
	{ X86_REG_RDX, X86_REG_EDX },
	{ X86_REG_RBX, X86_REG_EBX },
	{ X86_REG_RSP, X86_REG_ESP },
	{ X86_REG_RBP, X86_REG_EBP },
	{ X86_REG_RSI, X86_REG_ESI },
	{ X86_REG_RDI, X86_REG_EDI },
	{ X86_REG_R8, X86_REG_R8D },
	{ X86_REG_R9, X86_REG_R9D },
	{ X86_REG_R10, X86_REG_R10D },
	{ X86_REG_R11, X86_REG_R11D },
	{ X86_REG_R12, X86_REG_R12D },
	{ X86_REG_R13, X86_REG_R13D },
	{ X86_REG_R14, X86_REG_R14D },
	{ X86_REG_R15, X86_REG_R15D },
};

#define REGISTERS ARRAY_LEN(registers)
#define RSP	  5
#define RDI	  8

/* Returns the number of a general-purpose register by its name of 64 or 32 bits; 0: any other register */
static u8 number_of(u16 reg)
{
	u8 i;

	for (i = 1; i < REGISTERS; i++)
		if (registers[i].wide == reg || registers[i].narrow == reg)
			return i;
	return 0;
}

/* The registers that an instruction writes; all if that is not known. A call preserves those that the callee saves. */
static u32 written(csh handle, const cs_insn *insn)
{
	static const u8 lost[] = { 1, 2, 3, 7, 8, 9, 10, 11, 12 };
	cs_regs read, write;
	u8 n_read, n_write, i;
	u32 mask = 0;

	if (insn->id == X86_INS_CALL) {
		for (i = 0; i < sizeof(lost); i++)
			mask |= 1u << lost[i];
		return mask;
	}
	if (cs_regs_access(handle, insn, read, &n_read, write, &n_write))
		return ~0u;
	for (i = 0; i < n_write; i++)
		mask |= 1u << number_of(write[i]);
	return mask & ~1u;
}

/* The address of a memory operand with at most one register; false: it has more. */
static bool address_of(const cs_insn *insn, const x86_op_mem *m, struct fact *f)
{
	if (m->index != X86_REG_INVALID || m->segment != X86_REG_INVALID)
		return false;
	f->disp = m->disp;
	if (m->base == X86_REG_RIP)
		f->disp += (s64)(insn->address + insn->size);
	else if (m->base != X86_REG_INVALID)
		f->base = number_of(m->base);
	return m->base == X86_REG_RIP || m->base == X86_REG_INVALID || f->base;
}

static bool is_one(const cs_x86 *x)
{
	return x->op_count == 2 && x->operands[1].type == X86_OP_IMM && x->operands[1].imm == 1;
}

static void note_memory(const cs_insn *insn, struct fact *f)
{
	const cs_x86 *x = &insn->detail->x86;

	if (insn->id == X86_INS_MOV && x->operands[1].type == X86_OP_IMM && x->operands[0].size == 4) {
		f->kind = FACT_STORE;
		f->value = x->operands[1].imm;
	} else if ((insn->id == X86_INS_ADD && is_one(x)) || insn->id == X86_INS_INC) {
		f->kind = x->operands[0].size == 8 ? FACT_INCREMENT : FACT_NONE;
	} else if (insn->id == X86_INS_MOV && x->operands[1].type == X86_OP_REG &&
		   x->operands[0].mem.base == X86_REG_RSP) {
		f->kind = FACT_SPILL;
		f->from = number_of(x->operands[1].reg);
	}
	if (f->kind && !address_of(insn, &x->operands[0].mem, f))
		f->kind = FACT_NONE;
}

static void note_register(const cs_insn *insn, struct fact *f)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	f->to = number_of(op[0].reg);
	if (!f->to)
		return;
	if (insn->id == X86_INS_LEA && address_of(insn, &op[1].mem, f)) {
		f->kind = FACT_ADDRESS;
	} else if (insn->id == X86_INS_MOV && op[1].type == X86_OP_IMM) {
		f->kind = FACT_ADDRESS;
		f->disp = op[1].imm;
	} else if (insn->id == X86_INS_MOV && op[1].type == X86_OP_REG) {
		f->base = number_of(op[1].reg);
		f->kind = f->base ? FACT_ADDRESS : FACT_NONE;
	} else if (insn->id == X86_INS_MOV && op[1].type == X86_OP_MEM && op[1].mem.base == X86_REG_RSP &&
		   address_of(insn, &op[1].mem, f)) {
		f->kind = FACT_FILL;
	}
}

static void note(struct history *h, csh handle, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	struct fact *f = &h->facts[h->n++ % WINDOW];

	*f = (struct fact){ .writes = written(handle, insn) };
	if (x->op_count && x->operands[0].type == X86_OP_MEM)
		note_memory(insn, f);
	else if (x->op_count == 2 && x->operands[0].type == X86_OP_REG)
		note_register(insn, f);
}

static const struct fact *fact(const struct history *h, u32 i)
{
	return &h->facts[i % WINDOW];
}

static u32 oldest(const struct history *h)
{
	return h->n > WINDOW ? h->n - WINDOW : 0;
}

/* The value of a register before a certain fact, plus a number. */
struct address {
	u8 reg; /* 0: only the number */
	u32 at; /* before this fact */
	s64 disp;
};

/* The last fact before `at` that writes the register; `at` if there is none. */
static u32 last_write(const struct history *h, u8 reg, u32 at)
{
	u32 i;

	for (i = at; i-- > oldest(h);)
		if (fact(h, i)->writes & 1u << reg)
			return i;
	return at;
}

/* The fact that stored on the stack what fact `at` loads from there; `at` if it is not in the window. */
static u32 spill_of(const struct history *h, u32 at)
{
	u32 i;

	for (i = at; i-- > oldest(h) && !(fact(h, i)->writes & 1u << RSP);)
		if (fact(h, i)->kind == FACT_SPILL && fact(h, i)->disp == fact(h, at)->disp)
			return fact(h, i)->from ? i : at;
	return at;
}

/* Traces the address back to the values that it was computed from, as far as the window reaches. */
static void resolve(const struct history *h, struct address *a)
{
	const struct fact *f;
	u32 i, spill;

	/* each step goes back by at least one fact, so the loop ends */
	while (a->reg) {
		i = last_write(h, a->reg, a->at);
		f = fact(h, i);
		if (i == a->at || f->to != a->reg)
			return;
		if (f->kind == FACT_ADDRESS) {
			*a = (struct address){ f->base, i, a->disp + f->disp };
			continue;
		}
		spill = f->kind == FACT_FILL ? spill_of(h, i) : i;
		if (spill == i)
			return;
		*a = (struct address){ fact(h, spill)->from, spill, a->disp };
	}
}

/* Does fact i refer to the address that is `below` bytes before the argument? */
static bool is_below(const struct history *h, u32 i, const struct address *argument, s64 below)
{
	struct address a = { fact(h, i)->base, i, fact(h, i)->disp };
	u32 k, from, to;

	resolve(h, &a);
	if (a.reg != argument->reg || argument->disp - a.disp != below)
		return false;
	/* the register must not have been written in between */
	from = a.at < argument->at ? a.at : argument->at;
	to = a.at < argument->at ? argument->at : a.at;
	for (k = from; a.reg && k < to; k++)
		if (fact(h, k)->writes & 1u << a.reg)
			return false;
	return true;
}

enum call_kind { CALL_UNKNOWN, CALL_TAKE, CALL_DROP };

/* The kind of signal call that follows the newest fact. */
static enum call_kind kind_of(const struct history *h)
{
	struct address argument = { RDI, h->n, 0 };
	u32 i;

	resolve(h, &argument);
	for (i = h->n; i-- > oldest(h);) {
		const struct fact *f = fact(h, i);

		if (f->kind == FACT_STORE && !f->value && is_below(h, i, &argument, LOCKED_TO_COND))
			return CALL_DROP;
		if (f->kind == FACT_STORE && f->value == 1 && is_below(h, i, &argument, LOCKED_TO_SWITCH))
			return CALL_TAKE;
		if (f->kind == FACT_INCREMENT && is_below(h, i, &argument, NUMBER_TO_SWITCH))
			return CALL_TAKE;
	}
	return CALL_UNKNOWN;
}

/*
 * Decodes the function that contains addr, up to addr. false: no instruction begins at addr, or the start of the
 * function is unknown.
 */
static bool decode_to(struct elf *elf, u64 addr, struct history *h)
{
	u64 start, size, len;
	uint64_t at;
	const u8 *code;
	cs_insn *insn;
	size_t left;
	csh handle;

	h->n = 0;
	if (elf__function_at(elf, addr, &start, &size) || start >= addr)
		return false;
	len = addr - start;
	code = elf__bytes(elf, start, &len);
	if (!code || start + len != addr || cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	at = start;
	left = len;
	while (insn && left && cs_disasm_iter(handle, &code, &left, &at, insn))
		note(h, handle, insn);
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return at == addr;
}

static void add_signal(struct elf *elf, u64 addr, struct gil_full_sites *out)
{
	struct history h;
	enum call_kind kind;

	if (!decode_to(elf, addr, &h)) {
		/* the bytes of a call inside of another instruction are not a call */
		out->unknown += gil_find__is_instruction(elf, addr);
		return;
	}
	kind = kind_of(&h);
	if (kind == CALL_TAKE && out->n_takes < GIL_FULL_MAX)
		out->takes[out->n_takes++] = addr;
	else if (kind == CALL_DROP && out->n_drops < GIL_FULL_MAX)
		out->drops[out->n_drops++] = addr;
	else
		out->unknown++;
}

static void add_switch(struct elf *elf, u64 addr, u64 jump, struct gil_full_sites *out)
{
	if (!gil_find__is_instruction(elf, addr))
		return;
	if (!jump || out->n_switches == GIL_FULL_MAX) {
		out->unknown++;
		return;
	}
	out->switches[out->n_switches++] = (struct gil_wait_site){ addr, jump };
}

static void scan(struct elf *elf, const struct targets *signal, const struct targets *wait, u64 addr, u64 size,
		 struct gil_full_sites *out)
{
	const u8 *code = elf__bytes(elf, addr, &size), *next;
	u64 i, after, left;
	u32 len;

	for (i = 0; code && i < size; i++) {
		if (code[i] != 0xe8 && code[i] != 0xff)
			continue;
		if (targets__call_at(signal, code + i, size - i, addr + i)) {
			add_signal(elf, addr + i, out);
			continue;
		}
		len = targets__call_at(wait, code + i, size - i, addr + i);
		if (!len)
			continue;
		next = code + i + len;
		after = addr + i + len;
		left = size - i - len;
		add_switch(elf, addr + i, gil_find__jump(next, left, after, 0), out);
	}
}

void gil_find__full(struct elf *elf, struct gil_full_sites *out)
{
	struct targets signal, wait;
	u64 addr, size;
	u32 i;

	memset(out, 0, sizeof(*out));
	targets__of(&wait, elf, "pthread_cond_wait");
	if (!targets__of(&signal, elf, "pthread_cond_signal"))
		return;
	for (i = 0; elf__text(elf, i, &addr, &size); i++)
		scan(elf, &signal, &wait, addr, size, out);
}
