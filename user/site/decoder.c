// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "site/decoder.h"

#include "site/x86.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSN_BYTES 16
#define BACK_MAX   48

struct decoder {
	csh handle;
	cs_insn *insn; /* the instruction decoded last */
};

struct decoder *decoder__new(void)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle)) {
		free(d);
		return NULL;
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs_malloc(d->handle);
	if (!d->insn) {
		decoder__free(d);
		return NULL;
	}
	return d;
}

void decoder__free(struct decoder *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

bool decoder__insn(struct decoder *d, const u8 *code, u64 len, u64 addr, struct insn *out)
{
	size_t left = len < INSN_BYTES ? len : INSN_BYTES;
	uint64_t at = addr;

	if (!cs_disasm_iter(d->handle, &code, &left, &at, d->insn))
		return false;
	memset(out, 0, sizeof(*out));
	out->addr = addr;
	out->len = d->insn->size;
	x86__classify(d->insn, out);
	return true;
}

bool decoder__keeps_arguments(struct decoder *d)
{
	return x86__keeps_arguments(d->handle, d->insn);
}

const char *decoder__text(struct decoder *d, char *buf, size_t len)
{
	u8 bytes[INSN_BYTES] = {};
	const u8 *code = bytes;
	size_t left = d->insn->size;
	uint64_t at = d->insn->address;

	memcpy(bytes, d->insn->bytes, left < sizeof(bytes) ? left : sizeof(bytes));
	/*
	 * Texts are in AT&T syntax, as those of perf and gdb. It also reverses capstone's order of operands, so
	 * classify() gets instructions that were decoded in Intel syntax.
	 */
	cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	if (cs_disasm_iter(d->handle, &code, &left, &at, d->insn))
		snprintf(buf, len, "%s%s%s", d->insn->mnemonic, *d->insn->op_str ? " " : "", d->insn->op_str);
	else
		snprintf(buf, len, "?");
	cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_INTEL);
	return buf;
}

bool decoder__jump_table(struct decoder *d, const u8 *const *code, const u64 *addrs, u32 n, struct jump_table *out)
{
	cs_insn *back[BACK_MAX];
	bool found = false;
	u32 i, have;

	if (n > BACK_MAX)
		n = BACK_MAX;
	for (have = 0; have < n; have++) {
		const u8 *p = code[have];
		size_t left = INSN_BYTES;
		uint64_t at = addrs[have];

		back[have] = cs_malloc(d->handle);
		if (!back[have])
			break;
		if (!cs_disasm_iter(d->handle, &p, &left, &at, back[have])) {
			cs_free(back[have], 1);
			break;
		}
	}
	memset(out, 0, sizeof(*out));
	if (have)
		found = x86__jump_table((const cs_insn *const *)back, have, out);
	for (i = 0; i < have; i++)
		cs_free(back[i], 1);
	return found;
}
