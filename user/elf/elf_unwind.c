// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One row of a function's unwind table: runs the instructions of .eh_frame up to an address. Supports what compilers
 * emit for ordinary functions, but no expressions (signal frames, PLT). Layout: DWARF 5, 6.4; x86-64 psABI.
 */
#include <errno.h>
#include <string.h>

#include "elf/elf_cursor.h"

#define REG_BP 6
#define REG_SP 7
#define REG_RA 16

#define FDE_MAX	    (64 << 10) /* bytes of one function's instructions that are read */
#define CIE_MAX	    512
#define STATES	    8 /* depth of DW_CFA_remember_state */
#define INSTRUCTION 0xc0 /* mask: the highest two bits select the three most common instructions */

enum rule {
	RULE_SAME,
	RULE_AT_CFA, /* saved at CFA + offset */
	RULE_UNDEFINED,
	RULE_OTHER,
};

struct row {
	u64 cfa_reg;
	s64 cfa;
	bool cfa_other;
	enum rule bp, ra;
	s64 bp_at, ra_at;
};

struct machine {
	u64 code_align;
	s64 data_align;
	u8 encoding; /* of addresses in the FDE */
	u64 location, target;
	struct row row, initial, saved[STATES];
	u32 n_saved;
	bool is_invalid;
};

/* A product that overflows wraps; the file is untrusted. */
static s64 scaled(const struct machine *m, u64 n)
{
	return (s64)(n * (u64)m->data_align);
}

static void set_rule(struct machine *m, u64 reg, enum rule rule, s64 at)
{
	if (reg == REG_BP) {
		m->row.bp = rule;
		m->row.bp_at = at;
	} else if (reg == REG_RA) {
		m->row.ra = rule;
		m->row.ra_at = at;
	}
}

static void restore(struct machine *m, u64 reg)
{
	if (reg == REG_BP)
		set_rule(m, reg, m->initial.bp, m->initial.bp_at);
	else if (reg == REG_RA)
		set_rule(m, reg, m->initial.ra, m->initial.ra_at);
}

static void skip(struct cursor *c, u64 n)
{
	if (n > c->size - c->pos)
		c->is_truncated = true;
	else
		c->pos += n;
}

static void set_cfa(struct machine *m, u64 reg, s64 cfa)
{
	m->row.cfa_reg = reg;
	m->row.cfa = cfa;
	m->row.cfa_other = false;
}

/* Instructions whose operands are registers and offsets. Returns false for any other. */
static bool run_register(struct machine *m, struct cursor *c, u8 op)
{
	u64 reg;

	switch (op) {
	case 0x05: /* offset_extended */
		reg = get_leb128(c);
		set_rule(m, reg, RULE_AT_CFA, scaled(m, get_leb128(c)));
		return true;
	case 0x06: /* restore_extended */
		restore(m, get_leb128(c));
		return true;
	case 0x07: /* undefined */
		set_rule(m, get_leb128(c), RULE_UNDEFINED, 0);
		return true;
	case 0x08: /* same_value */
		set_rule(m, get_leb128(c), RULE_SAME, 0);
		return true;
	case 0x09: /* register */
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf: its second operand has the same length */
		set_rule(m, get_leb128(c), RULE_OTHER, 0);
		get_leb128(c);
		return true;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		set_rule(m, get_leb128(c), RULE_OTHER, 0);
		skip(c, get_leb128(c));
		return true;
	case 0x11: /* offset_extended_sf */
		reg = get_leb128(c);
		set_rule(m, reg, RULE_AT_CFA, scaled(m, (u64)get_sleb128(c)));
		return true;
	}
	return false;
}

/* Instructions about the CFA and the others. Returns false for an unknown one. */
static bool run_frame(struct machine *m, struct cursor *c, u8 op)
{
	u64 reg;

	switch (op) {
	case 0x00: /* nop */
		return true;
	case 0x0a: /* remember_state */
		if (m->n_saved == STATES)
			return false;
		m->saved[m->n_saved++] = m->row;
		return true;
	case 0x0b: /* restore_state */
		if (!m->n_saved)
			return false;
		m->row = m->saved[--m->n_saved];
		return true;
	case 0x0c: /* def_cfa */
		reg = get_leb128(c);
		set_cfa(m, reg, (s64)get_leb128(c));
		return true;
	case 0x0d: /* def_cfa_register */
		m->row.cfa_reg = get_leb128(c);
		return true;
	case 0x0e: /* def_cfa_offset */
		m->row.cfa = (s64)get_leb128(c);
		return true;
	case 0x0f: /* def_cfa_expression */
		m->row.cfa_other = true;
		skip(c, get_leb128(c));
		return true;
	case 0x12: /* def_cfa_sf */
		reg = get_leb128(c);
		set_cfa(m, reg, scaled(m, (u64)get_sleb128(c)));
		return true;
	case 0x13: /* def_cfa_offset_sf */
		m->row.cfa = scaled(m, (u64)get_sleb128(c));
		return true;
	case 0x2e: /* GNU_args_size */
		get_leb128(c);
		return true;
	}
	return false;
}

/* Returns true if the location changed; it may be beyond the target now. */
static bool run_advance(struct machine *m, struct cursor *c, u8 op)
{
	if ((op & INSTRUCTION) == 0x40)
		m->location += (op & ~INSTRUCTION) * m->code_align;
	else if (op == 0x01)
		m->location = get_encoded(c, m->encoding, true);
	else if (op == 0x02)
		m->location += get(c, 1) * m->code_align;
	else if (op == 0x03)
		m->location += get(c, 2) * m->code_align;
	else if (op == 0x04)
		m->location += get(c, 4) * m->code_align;
	else
		return false;
	return true;
}

/* Runs up to the end or the first row that begins beyond the target. */
static void run(struct machine *m, struct cursor *c, u64 end)
{
	while (c->pos < end && !c->is_truncated && !m->is_invalid) {
		u8 op = get(c, 1);

		if (run_advance(m, c, op)) {
			if (m->location > m->target)
				return;
		} else if ((op & INSTRUCTION) == 0x80) {
			set_rule(m, op & ~INSTRUCTION, RULE_AT_CFA, scaled(m, get_leb128(c)));
		} else if ((op & INSTRUCTION) == 0xc0) {
			restore(m, op & ~INSTRUCTION);
		} else if (!run_register(m, c, op) && !run_frame(m, c, op)) {
			m->is_invalid = true;
		}
	}
}

/* The instructions of the CIE make the initial row of all its functions. */
static int run_cie(struct machine *m, struct elf *elf, u64 addr, bool *sized)
{
	struct cursor c = at(elf, addr, CIE_MAX);
	u64 length = get(&c, 4), end = 4 + length, version, data;
	const char *aug;

	if (get(&c, 4) || length > CIE_MAX - 4 || end > c.size)
		return -ENOENT;
	version = get(&c, 1);
	if (c.is_truncated || !memchr(c.data + c.pos, 0, c.size - c.pos))
		return -ENOENT;
	aug = (const char *)c.data + c.pos;
	c.pos += strlen(aug) + 1;
	m->code_align = get_leb128(&c);
	m->data_align = get_sleb128(&c);
	if ((version == 1 ? get(&c, 1) : get_leb128(&c)) != REG_RA)
		return -ENOENT;
	*sized = *aug == 'z';
	if (*sized) {
		data = get_leb128(&c);
		data += c.pos;
		for (aug++; *aug && !c.is_truncated; aug++) {
			if (*aug == 'R')
				m->encoding = get(&c, 1);
			else if (*aug == 'L')
				get(&c, 1);
			else if (*aug == 'P')
				get_encoded(&c, get(&c, 1) & ENC_FORMAT, false);
			else if (*aug == 'S')
				return -ENOTSUP;
		}
		c.pos = data;
	}
	if (c.is_truncated || c.pos > end)
		return -ENOENT;
	run(m, &c, end);
	m->initial = m->row;
	return c.is_truncated || m->is_invalid ? -ENOENT : 0;
}

int elf__unwind(struct elf *elf, u64 addr, struct elf_unwind *out)
{
	struct machine m = { .target = addr, .location = 0 };
	u64 fde, start, size, length, here, back;
	struct cursor c;
	bool sized;
	int err;

	if (elf__find_fde(elf, addr, &fde, &start, &size))
		return -ENOENT;
	c = at(elf, fde, FDE_MAX);
	length = get(&c, 4);
	here = c.addr + c.pos;
	back = get(&c, 4);
	err = run_cie(&m, elf, here - back, &sized);
	if (err)
		return err;
	get_encoded(&c, m.encoding, true);
	get_encoded(&c, m.encoding, false);
	if (sized)
		skip(&c, get_leb128(&c));
	if (c.is_truncated || length + 4 < c.pos)
		return -ENOENT;
	m.location = start;
	run(&m, &c, length + 4 < c.size ? length + 4 : c.size);
	if (c.is_truncated || m.is_invalid)
		return -ENOENT;
	*out = (struct elf_unwind){
		.by_frame_pointer = m.row.cfa_reg == REG_BP,
		.saved = m.row.bp == RULE_AT_CFA,
		.outermost = m.row.ra == RULE_UNDEFINED,
		.cfa = (s32)m.row.cfa,
		.frame_pointer = (s32)m.row.bp_at,
	};
	if (out->outermost)
		return 0;
	if (m.row.cfa_other || (m.row.cfa_reg != REG_SP && m.row.cfa_reg != REG_BP) || m.row.cfa != out->cfa ||
	    m.row.ra != RULE_AT_CFA || m.row.ra_at != -8 || m.row.bp == RULE_OTHER ||
	    (m.row.bp == RULE_AT_CFA && m.row.bp_at != out->frame_pointer))
		return -ENOTSUP;
	return 0;
}
