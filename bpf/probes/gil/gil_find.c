// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds take_gil's wait without a symbol for it. CPython's source has
 *
 *	int r = pthread_cond_timedwait(&gil->cond, &gil->mutex, ...);
 *	if (r == ETIMEDOUT)
 *
 * once, in take_gil. A compiler turns it into `call; cmp $110,%eax; jcc`, with at most a few moves in between. The
 * import, the constant and the order all survive stripping. Builds that use semaphores for locks (all on Linux) have
 * no other such call; the BPF program checks the layout of the arguments in any case.
 */
#include <capstone/capstone.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gil_find_private.h"
#include "python/stripped.h"

/* instructions from the call to the jump, at most */
#define DISTANCE_MAX 8

bool gil_find__is_cpython(struct elf *elf)
{
	return (elf__exports(elf, "PyEval_RestoreThread") && elf__exports(elf, "_PyRuntime")) ||
	       stripped__is_cpython(elf);
}

bool gil_find__is_free_threaded(struct elf *elf)
{
	return elf__exports(elf, "_Py_MergeZeroLocalRefcount");
}

/* The two numbers after "python" in a file's name, such as libpython3.10.so.1.0; "" if there are none. */
static void version_in_name(const char *path, char *version, size_t len)
{
	const char *name = strrchr(path, '/'), *at;
	u32 major, minor;

	*version = '\0';
	at = strstr(name ? name : path, "python");
	if (at && sscanf(at, "python%1u.%2u", &major, &minor) == 2)
		snprintf(version, len, " %u.%u", major, minor);
}

void gil_find__name(struct elf *elf, const char *path, char *name, size_t len)
{
	struct elf_symbol sym;
	const u8 *bytes = NULL;
	u64 size = 8, hex = 0;
	char version[32];

	/* PY_VERSION_HEX, Include/patchlevel.h: a byte each; the last byte is the release level and its number */
	if (!elf__find_symbol(elf, "Py_Version", &sym) && sym.size == 8)
		bytes = elf__bytes(elf, sym.addr, &size);
	if (bytes && size == 8)
		memcpy(&hex, bytes, sizeof(hex));
	if (hex >> 24 == 3)
		snprintf(version, sizeof(version), " %llu.%llu.%llu", hex >> 24, hex >> 16 & 255, hex >> 8 & 255);
	else
		version_in_name(path, version, sizeof(version));
	snprintf(name, len, "CPython%s%s", version, gil_find__is_free_threaded(elf) ? ", free-threaded" : "");
}

static bool contains(const u64 *list, u32 n, u64 value)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (list[i] == value)
			return true;
	return false;
}

static s64 read_rel32(const u8 *p)
{
	s32 rel;

	memcpy(&rel, p, sizeof(rel));
	return rel;
}

bool targets__of(struct targets *t, struct elf *elf, const char *name)
{
	struct elf_symbol sym;

	memset(t, 0, sizeof(*t));
	t->n_code = elf__plt_stubs(elf, name, t->code, TARGETS_MAX - 1);
	t->n_slots = elf__got_slots(elf, name, t->slots, TARGETS_MAX);
	/* linked statically, with libc in the same file */
	if (!elf__find_symbol(elf, name, &sym))
		t->code[t->n_code++] = sym.addr;
	return t->n_code || t->n_slots;
}

u32 targets__call_at(const struct targets *t, const u8 *p, u64 left, u64 addr)
{
	if (left >= 5 && p[0] == 0xe8 && contains(t->code, t->n_code, addr + 5 + read_rel32(p + 1)))
		return 5;
	if (left >= 6 && p[0] == 0xff && p[1] == 0x15 && contains(t->slots, t->n_slots, addr + 6 + read_rel32(p + 2)))
		return 6;
	return 0;
}

static bool is_eax(u16 reg)
{
	return reg == X86_REG_EAX || reg == X86_REG_RAX || reg == X86_REG_AX || reg == X86_REG_AL || reg == X86_REG_AH;
}

/* The location of the call's result, and whether it has been compared. */
struct result {
	s64 value; /* the value that it is compared with */
	u16 copy; /* a register other than eax that also contains the result */
	bool compared;
};

/* Is this `cmp $value,%eax`, or for 0 `test %eax,%eax`, on the result or its copy? */
static bool compares(const cs_insn *insn, const struct result *r)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	if (insn->id != X86_INS_CMP && insn->id != X86_INS_TEST)
		return false;
	if (op[0].type != X86_OP_REG || (op[0].reg != X86_REG_EAX && (!r->copy || op[0].reg != r->copy)))
		return false;
	if (insn->id == X86_INS_TEST)
		return !r->value && op[1].type == X86_OP_REG && op[1].reg == op[0].reg;
	return op[1].type == X86_OP_IMM && op[1].imm == r->value;
}

/* Tracks the result through one instruction that is not a jump; false: the result is overwritten. */
static bool follow(csh handle, const cs_insn *insn, struct result *r)
{
	const cs_x86 *x = &insn->detail->x86;
	cs_regs read, write;
	u8 n_read, n_write, i;

	if (compares(insn, r)) {
		r->compared = true;
		return true;
	}
	if (cs_regs_access(handle, insn, read, &n_read, write, &n_write))
		return false;
	for (i = 0; i < n_write; i++)
		if (is_eax(write[i]) || (r->compared && write[i] == X86_REG_EFLAGS))
			return false;
	if (insn->id == X86_INS_MOV && x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG &&
	    x->operands[1].reg == X86_REG_EAX)
		r->copy = x->operands[0].reg;
	return true;
}

u64 gil_find__jump(const u8 *code, u64 left, u64 addr, s64 value)
{
	struct result r = { .value = value };
	uint64_t at = addr;
	size_t size = left;
	u64 jump = 0;
	cs_insn *insn;
	csh handle;
	u32 i;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return 0;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	for (i = 0; insn && i < DISTANCE_MAX; i++) {
		if (!cs_disasm_iter(handle, &code, &size, &at, insn))
			break;
		/* je or jne, depending on how the compiler lays out the loop */
		if (r.compared && (insn->id == X86_INS_JE || insn->id == X86_INS_JNE)) {
			jump = insn->address;
			break;
		}
		if (cs_insn_group(handle, insn, CS_GRP_JUMP) || cs_insn_group(handle, insn, CS_GRP_CALL) ||
		    cs_insn_group(handle, insn, CS_GRP_RET) || !follow(handle, insn, &r))
			break;
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return jump;
}

bool gil_find__is_instruction(struct elf *elf, u64 addr)
{
	u64 start, size, len, pc;
	const u8 *code;
	cs_insn *insn;
	csh handle;

	if (elf__function_at(elf, addr, &start, &size))
		return true;
	len = addr - start;
	if (!len)
		return true;
	code = elf__bytes(elf, start, &len);
	if (!code || start + len != addr || cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return false;
	insn = cs_malloc(handle);
	pc = start;
	while (insn && pc < addr) {
		uint64_t at = pc;
		size_t left = len;

		if (!cs_disasm_iter(handle, &code, &left, &at, insn))
			break;
		len = left;
		pc = at;
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return pc == addr;
}

static u32 scan(struct elf *elf, const struct targets *t, u64 addr, u64 size, struct gil_wait_site *out, u32 max)
{
	const u8 *code = elf__bytes(elf, addr, &size);
	u32 n = 0, call;
	u64 i, jump;

	for (i = 0; code && i < size && n < max; i++) {
		if (code[i] != 0xe8 && code[i] != 0xff)
			continue;
		call = targets__call_at(t, code + i, size - i, addr + i);
		jump = call ? gil_find__jump(code + i + call, size - i - call, addr + i + call, ETIMEDOUT) : 0;
		if (!jump || !gil_find__is_instruction(elf, addr + i))
			continue;
		out[n].call = addr + i;
		out[n++].jump = jump;
	}
	return n;
}

u32 gil_find__waits(struct elf *elf, struct gil_wait_site *out, u32 max)
{
	struct targets t;
	u64 addr, size;
	u32 n = 0, i;

	if (!targets__of(&t, elf, "pthread_cond_timedwait"))
		return 0;
	for (i = 0; n < max && elf__text(elf, i, &addr, &size); i++)
		n += scan(elf, &t, addr, size, out + n, max - n);
	return n;
}
