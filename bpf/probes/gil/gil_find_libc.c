// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where libc's pthread_cond_timedwait begins and ends, for runtimes whose own
 * call of it can't be probed. A return probe is out of the question there: a
 * cancelled thread unwinds through this function. So its exits are found by
 * decoding it, and a function with an exit that is not understood is refused.
 */
#include <capstone/capstone.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gil_find.h"

#define FUNCTION_MAX 16384

/* GNU property: what a linker found in all its inputs */
#define PROPERTY_NOTE	   5
#define PROPERTY_X86_AND   0xc0000002
#define PROPERTY_X86_SHSTK 2

static bool has_group(const cs_insn *insn, u8 group)
{
	u8 i;

	for (i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

/* Looks at one instruction of the function [start, end). 0, or -ENOENT with the reason. */
static int visit(const cs_insn *insn, u64 start, u64 end, struct gil_libc_place *out, const char **why)
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

static int decode(csh handle, const u8 *code, u64 size, u64 start, struct gil_libc_place *out, const char **why)
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
		/* endbr64 is single-stepped, what follows may be emulated; the return address is on top at both */
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

int gil_find__libc(struct elf *elf, struct gil_libc_place *out, const char **why)
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
	*why = "the size of pthread_cond_timedwait makes no sense";
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

static bool cpu_has_shadow_stack(void)
{
	char line[8192];
	bool has = false;
	FILE *f;

	f = fopen("/proc/cpuinfo", "re");
	while (f && !has && fgets(line, sizeof(line), f))
		has = !strncmp(line, "flags", 5) && strstr(line, " user_shstk");
	if (f)
		fclose(f);
	return has;
}

/* Properties: type, size, data, padded to eight bytes. */
static bool property_shstk(const u8 *p, u64 size)
{
	u32 head[2], bits;

	while (size >= sizeof(head)) {
		u64 len;

		memcpy(head, p, sizeof(head));
		len = sizeof(head) + (((u64)head[1] + 7) & ~7ULL);
		if (len > size)
			return false;
		if (head[0] == PROPERTY_X86_AND && head[1] == sizeof(bits)) {
			memcpy(&bits, p + sizeof(head), sizeof(bits));
			return bits & PROPERTY_X86_SHSTK;
		}
		p += len;
		size -= len;
	}
	return false;
}

bool gil_find__marked_shstk(struct elf *elf)
{
	const u8 *note;
	u32 head[3];
	u64 size;

	note = elf__properties(elf, &size);
	if (!note || size < 16)
		return false;
	memcpy(head, note, sizeof(head));
	if (head[0] != 4 || head[2] != PROPERTY_NOTE || memcmp(note + 12, "GNU", 4) || head[1] > size - 16)
		return false;
	return property_shstk(note + 16, head[1]);
}

bool gil_find__shadow_stack(struct elf *elf)
{
	return cpu_has_shadow_stack() && gil_find__marked_shstk(elf);
}
