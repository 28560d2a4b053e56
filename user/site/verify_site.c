// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The attacher's check: without it a compromised worker could have any instruction of any process overwritten.
 *
 * Checks sites only against the file itself, without debug files or symbols from a server. The file may be hostile,
 * but its tables then describe only its own code, which its owner could have written in any way.
 */
#include "site/verify_site.h"

#include <capstone/capstone.h>
#include <stdlib.h>

#include "elf/elf.h"
#include "site/decoder.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

/* Bytes decoded from one start at most: CPython's largest function has 100 KiB. */
#define DECODE_MAX   (1u << 20)
#define STRAIGHT_MAX 64 /* bytes between a function's entry and its probe, as in place.c */

struct site_checker {
	struct elf *elf;
	csh handle;
	cs_insn *insn;
	struct decoder *decoder; /* created when needed */
	u64 *starts; /* function starts from symbols, sorted; read when needed */
	u32 n_starts;
	bool starts_read;
	/* range of the last linear decoding */
	u64 decoded_from, decoded_to;
};

struct site_checker *site_checker__new(int fd)
{
	struct site_checker *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (elf__open(&c->elf, fd)) {
		free(c);
		return NULL;
	}
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &c->handle))
		c->handle = 0;
	c->insn = c->handle ? cs_malloc(c->handle) : NULL;
	if (!c->insn) {
		site_checker__free(c);
		return NULL;
	}
	return c;
}

void site_checker__free(struct site_checker *c)
{
	if (!c)
		return;
	if (c->insn)
		cs_free(c->insn, 1);
	if (c->handle)
		cs_close(&c->handle);
	decoder__free(c->decoder);
	elf__close(c->elf);
	free(c->starts);
	free(c);
}

static int add_start(const struct elf_function *f, void *arg)
{
	struct site_checker *c = arg;

	if (!array__push(c->starts, c->n_starts, f->addr))
		return 1;
	return 0;
}

/* The nearest function start at or before addr, from the file's own symbols. */
static bool symbol_before(struct site_checker *c, u64 addr, u64 *start)
{
	u32 n;

	if (!c->starts_read) {
		elf__each_function(c->elf, add_start, c);
		if (c->n_starts)
			qsort(c->starts, c->n_starts, sizeof(*c->starts), compare__u64);
		c->starts_read = true;
	}
	n = SEARCH(c->n_starts, i, c->starts[i] <= addr);
	if (!n)
		return false;
	*start = c->starts[n - 1];
	return addr - *start <= DECODE_MAX;
}

/* Does linear decoding from start reach addr? Continues the last decoding if it had the same start. */
static bool reaches(struct site_checker *c, u64 start, u64 addr)
{
	const u8 *code;
	size_t left;
	uint64_t at;
	u64 len;

	if (addr < start || addr - start > DECODE_MAX)
		return false;
	if (c->decoded_from != start || c->decoded_to > addr) {
		c->decoded_from = start;
		c->decoded_to = start;
	}
	if (c->decoded_to == addr)
		return true;
	/* the last instruction before addr may extend beyond it */
	len = addr - c->decoded_to + 16;
	code = elf__bytes(c->elf, c->decoded_to, &len);
	if (!code)
		return false;
	left = len;
	at = c->decoded_to;
	while (at < addr && cs_disasm_iter(c->handle, &code, &left, &at, c->insn))
		;
	/* after an error, the next decoding begins again at start */
	c->decoded_to = at <= addr ? at : start;
	return at == addr;
}

/* True if no instruction from start to addr jumps or changes the stack pointer. */
static bool is_straight(struct site_checker *c, u64 start, u64 addr)
{
	u64 len = addr - start + 16;
	const u8 *code;
	struct insn insn;

	if (addr - start > STRAIGHT_MAX)
		return false;
	if (!c->decoder)
		c->decoder = decoder__new();
	code = elf__bytes(c->elf, start, &len);
	if (!c->decoder || !code)
		return false;
	for (u64 at = start; at < addr; at += insn.len)
		if (!decoder__insn(c->decoder, code + (at - start), len - (at - start), at, &insn) ||
		    insn.kind != INSN_PLAIN || insn.sp.effect != REG_SAME)
			return false;
	return true;
}

/*
 * Is the return address on top of the stack at addr? From the unwind table, else by decoding from the function's
 * entry.
 */
static bool return_on_top(struct site_checker *c, u64 start, u64 addr)
{
	struct elf_unwind u;

	if (!elf__unwind(c->elf, addr, &u))
		return !u.outermost && !u.by_frame_pointer && u.cfa == 8;
	return is_straight(c, start, addr);
}

static enum site_verdict check(struct site_checker *c, u64 offset, bool returns)
{
	u64 addr, start, size, symbol;
	bool known, found;

	if (!elf__address_of(c->elf, offset, &addr))
		return SITE_NO_CODE;
	known = !elf__function_at(c->elf, addr, &start, &size);
	found = known && reaches(c, start, addr);
	/* code without unwind tables, or with data before it */
	if (!found && symbol_before(c, addr, &symbol) && (!known || symbol > start)) {
		known = true;
		start = symbol;
		found = reaches(c, start, addr);
	}
	if (!found)
		return known ? SITE_INSIDE : SITE_NO_START;
	return !returns || return_on_top(c, start, addr) ? SITE_OK : SITE_NO_RETURN;
}

void site_checker__check(struct site_checker *c, const u64 *offsets, u32 n, bool returns, u8 *verdicts)
{
	for (u32 i = 0; i < n; i++)
		verdicts[i] = check(c, offsets[i], returns);
}

const char *site_verdict__text(u32 verdict)
{
	static const char *const texts[SITE_VERDICTS] = {
		[SITE_OK] = "it may be probed",
		[SITE_UNREADABLE] = "the file could not be examined in time, or is no intact ELF file of this machine",
		[SITE_NO_CODE] = "the file has no code there",
		[SITE_NO_START] = "no table of the file says where the code around it begins",
		[SITE_INSIDE] = "it is in the middle of an instruction",
		[SITE_NO_RETURN] = "a return probe there would replace something other than the return address",
	};

	return verdict < SITE_VERDICTS ? texts[verdict] : texts[SITE_UNREADABLE];
}
