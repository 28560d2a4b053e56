// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * import_find_and_load() of Python/import.c runs for modules that sys.modules does not have:
 *
 *	if (_PySys_Audit(tstate, "import", "OOOOO", abs_name, ...) < 0)
 *		return NULL;
 *	...
 *	mod = PyObject_CallMethodObjArgs(importlib, "_find_and_load", abs_name, import_func, NULL);
 *
 * The last call exists twice where the compiler separates the path with -X importtime from the one without. The
 * function is called only from PyImport_ImportModuleLevelObject and is inlined there. That function is exported and
 * calls the audit hooks nowhere else. So the only such call is the start of an import, and the paths from there lead
 * to importlib.
 */
#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#include "python_find.h"

#define FUNCTION_MAX 65536
#define TARGETS_MAX  8
#define STEPS_MAX    400 /* instructions decoded after the call of the audit hooks */
#define WAYS_MAX     32
#define STRAIGHT_MAX 12

/* Possible targets of calls of certain functions. */
struct callees {
	u64 list[TARGETS_MAX * 2];
	u32 n;
};

struct function {
	struct elf *elf;
	struct placer *placer;
	csh handle;
	cs_insn *insn;
	const u8 *code;
	u64 start, size;
	struct callees audit, audit_tstate, call;
};

static void add_callee(struct elf *elf, struct callees *c, const char *name)
{
	u32 room = TARGETS_MAX * 2 - c->n;
	struct elf_symbol sym;

	if (room < 2)
		return;
	c->n += elf__plt_stubs(elf, name, c->list + c->n, room - 1);
	if (!elf__find_symbol(elf, name, &sym) && sym.function)
		c->list[c->n++] = sym.addr;
}

static bool goes_to(const struct callees *c, u64 target)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->list[i] == target)
			return true;
	return false;
}

/* Decodes the instruction at addr; false: there is none, or it is outside of the function. */
static bool decode(struct function *f, u64 addr)
{
	const u8 *code = f->code + (addr - f->start);
	size_t left = f->size - (addr - f->start);
	uint64_t at = addr;

	return addr >= f->start && addr < f->start + f->size && cs_disasm_iter(f->handle, &code, &left, &at, f->insn);
}

static bool is_call(const cs_insn *insn)
{
	return insn->id == X86_INS_CALL;
}

/* The target of a direct call or jump; 0: it is neither. */
static u64 target_of(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	return x->op_count == 1 && x->operands[0].type == X86_OP_IMM ? (u64)x->operands[0].imm : 0;
}

/* Finds the only call of the audit hooks. */
static int find_audit(struct function *f, struct import_place *out)
{
	u64 addr = f->start, target;
	u32 n = 0;

	while (decode(f, addr)) {
		target = is_call(f->insn) ? target_of(f->insn) : 0;
		if (target && (goes_to(&f->audit, target) || goes_to(&f->audit_tstate, target))) {
			out->audit = addr;
			out->name_fourth = goes_to(&f->audit_tstate, target);
			n++;
		}
		addr += f->insn->size;
	}
	return n == 1 ? 0 : -ENOENT;
}

/*
 * The first instruction from addr on, in a straight line, that the kernel can emulate: execution after a call passes
 * it. 0: there is none nearby.
 */
static u64 next_emulated(struct function *f, u64 addr)
{
	for (u32 i = 0; i < STRAIGHT_MAX && decode(f, addr); i++) {
		if (placer__emulated(f->placer, addr))
			return addr;
		if (cs_insn_group(f->handle, f->insn, CS_GRP_JUMP) || f->insn->id == X86_INS_RET || is_call(f->insn))
			return 0;
		addr += f->insn->size;
	}
	return 0;
}

struct walk {
	u64 ways[WAYS_MAX]; /* starts of straight-line paths, followed or still to be */
	u32 n, next;
	u32 steps;
	bool lost; /* not all of them could be followed */
};

static void add_way(struct walk *w, u64 addr)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->ways[i] == addr)
			return;
	if (w->n == WAYS_MAX)
		w->lost = true;
	else
		w->ways[w->n++] = addr;
}

static int add_done(struct function *f, u64 after, struct import_place *out)
{
	u64 done = next_emulated(f, after);

	if (!done || out->n_done == IMPORT_ENDS_MAX)
		return -ENOENT;
	for (u32 i = 0; i < out->n_done; i++)
		if (out->after_calls[i] == done)
			return 0;
	out->after_calls[out->n_done++] = done;
	return 0;
}

/* Follows one straight-line path up to the call of importlib, a jump away or a return. */
static int follow_way(struct function *f, struct walk *w, u64 addr, struct import_place *out)
{
	u64 target;

	while (decode(f, addr)) {
		if (++w->steps > STEPS_MAX)
			return -ENOENT;
		target = target_of(f->insn);
		if (is_call(f->insn) && target && goes_to(&f->call, target))
			return add_done(f, addr + f->insn->size, out);
		if (f->insn->id == X86_INS_RET)
			return 0;
		if (cs_insn_group(f->handle, f->insn, CS_GRP_JUMP)) {
			if (!target)
				return -ENOENT;
			/* skip the error path: out of the function (.cold), or a negative result of the hooks */
			if (target >= f->start && target < f->start + f->size && f->insn->id != X86_INS_JS)
				add_way(w, target);
			if (f->insn->id == X86_INS_JMP)
				return 0;
		}
		addr += f->insn->size;
	}
	return 0;
}

static int find_done(struct function *f, struct import_place *out)
{
	struct walk w = {};
	int err = 0;

	if (!decode(f, out->audit))
		return -ENOENT;
	add_way(&w, out->audit + f->insn->size);
	while (!err && w.next < w.n)
		err = follow_way(f, &w, w.ways[w.next++], out);
	return err || w.lost || !out->n_done ? -ENOENT : 0;
}

static int find(struct function *f, struct import_place *out, const char **why)
{
	int err;

	add_callee(f->elf, &f->audit, "PySys_Audit");
	add_callee(f->elf, &f->audit_tstate, "_PySys_Audit");
	add_callee(f->elf, &f->call, "PyObject_CallMethodObjArgs");
	add_callee(f->elf, &f->call, "_PyObject_CallMethodIdObjArgs");
	*why = "no memory for the disassembler";
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &f->handle))
		return -ENOENT;
	cs_option(f->handle, CS_OPT_DETAIL, CS_OPT_ON);
	f->insn = cs_malloc(f->handle);
	*why = "the search for modules was not recognized in PyImport_ImportModuleLevelObject";
	err = f->insn ? find_audit(f, out) : -ENOENT;
	err = err ?: find_done(f, out);
	if (f->insn)
		cs_free(f->insn, 1);
	cs_close(&f->handle);
	return err;
}

int python_find__import(struct elf *elf, struct placer *placer, struct import_place *out, const char **why)
{
	struct function f = { .elf = elf, .placer = placer };
	struct elf_symbol sym;

	memset(out, 0, sizeof(*out));
	*why = "PyImport_ImportModuleLevelObject is not exported";
	if (elf__find_symbol(elf, "PyImport_ImportModuleLevelObject", &sym) || !sym.function)
		return -ENOENT;
	*why = "the size of PyImport_ImportModuleLevelObject is implausible";
	f.start = sym.addr;
	f.size = sym.size;
	if (!f.size || f.size > FUNCTION_MAX)
		return -ENOENT;
	f.code = elf__bytes(elf, f.start, &f.size);
	if (!f.code || f.size != sym.size)
		return -ENOENT;
	return find(&f, out, why);
}

struct clones {
	const char *name;
	struct elf_symbol *out;
	u32 n, max;
};

static int on_clone(const struct elf_symbol *sym, void *arg)
{
	struct clones *c = arg;
	size_t len = strlen(c->name);

	if (c->n == c->max || !sym->function || strncmp(sym->name, c->name, len))
		return 0;
	/* neither .cold, which is jumped to, nor .part, which is only a part of the function */
	if (sym->name[len] && strncmp(sym->name + len, ".isra.", 6) && strncmp(sym->name + len, ".constprop.", 11))
		return 0;
	for (u32 i = 0; i < c->n; i++)
		if (c->out[i].addr == sym->addr)
			return 0;
	c->out[c->n++] = *sym;
	return 0;
}

u32 python_find__clones(struct elf *elf, const char *name, struct elf_symbol *out, u32 max)
{
	struct clones c = { .name = name, .out = out, .max = max };

	elf__each_symbol(elf, on_clone, &c);
	return c.n;
}

u32 python_find__version(struct elf *elf)
{
	struct elf_symbol sym;
	u64 size = 8, version;
	const u8 *p;

	if (elf__find_symbol(elf, "Py_Version", &sym) || sym.size != 8)
		return 0;
	p = elf__bytes(elf, sym.addr, &size);
	if (!p || size != 8)
		return 0;
	memcpy(&version, p, sizeof(version));
	return (u32)version;
}
