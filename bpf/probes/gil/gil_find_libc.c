// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the entry and the exits of libc's pthread_cond_timedwait, for runtimes whose own call of it can't be probed.
 * A return probe can't be used: a cancelled thread unwinds through this function. So its exits are found by decoding
 * it, and a function with an exit that is not understood is refused.
 */
#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#include "gil_find.h"

#define FUNCTION_MAX 16384

static bool has_group(const cs_insn *insn, u8 group)
{
	u8 i;

	for (i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

/* Examines one instruction of the function [start, end). Returns 0, or -ENOENT with the reason. */
static int visit(const cs_insn *insn, u64 start, u64 end, struct gil_libc_site *out, const char **why)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	u64 target;

	if (has_group(insn, CS_GRP_RET)) {
		if (out->n == GIL_SITES_MAX) {
			*why = "pthread_cond_timedwait has too many exits";
			return -ENOENT;
		}
		out->leave[out->n++] = insn->address;
		return 0;
	}
	if (!has_group(insn, CS_GRP_JUMP))
		return 0;
	if (!insn->detail->x86.op_count || op->type != X86_OP_IMM) {
		*why = "pthread_cond_timedwait has an indirect jump";
		return -ENOENT;
	}
	target = op->imm;
	if (target < start || target >= end) {
		*why = "pthread_cond_timedwait has a jump out of it";
		return -ENOENT;
	}
	return 0;
}

static int decode(csh handle, const u8 *code, u64 size, u64 start, struct gil_libc_site *out, const char **why)
{
	cs_insn *insn = cs_malloc(handle);
	uint64_t at = start;
	size_t left = size;
	int err = insn ? 0 : -ENOENT;

	out->enter = start;
	while (!err && left) {
		if (!cs_disasm_iter(handle, &code, &left, &at, insn)) {
			*why = "pthread_cond_timedwait can't be decoded";
			err = -ENOENT;
			break;
		}
		/*
		 * endbr64 is single-stepped, the next instruction may be emulated; the return address is on top of
		 * the stack at both
		 */
		if (insn->address == start && insn->id == X86_INS_ENDBR64)
			out->enter = at;
		err = visit(insn, start, start + size, out, why);
	}
	if (insn)
		cs_free(insn, 1);
	if (!err && !out->n) {
		*why = "pthread_cond_timedwait has no exit";
		err = -ENOENT;
	}
	return err;
}

int gil_find__libc(struct elf *elf, struct gil_libc_site *out, const char **why)
{
	struct elf_symbol sym;
	const u8 *code;
	csh handle;
	u64 size;
	int err;

	memset(out, 0, sizeof(*out));
	*why = "libc does not export pthread_cond_timedwait";
	if (elf__find_symbol(elf, "pthread_cond_timedwait", &sym) || !sym.dynamic || !sym.function)
		return -ENOENT;
	*why = "the size of pthread_cond_timedwait is implausible";
	size = sym.size;
	if (!size || size > FUNCTION_MAX)
		return -ENOENT;
	code = elf__bytes(elf, sym.addr, &size);
	if (!code || size != sym.size)
		return -ENOENT;
	*why = "no memory for the disassembler";
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return -ENOENT;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	err = decode(handle, code, size, sym.addr, out, why);
	cs_close(&handle);
	return err;
}
