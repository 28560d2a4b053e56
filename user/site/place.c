// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the probe sites of a function; docs/placement.md has the rules and the reasons for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "site/place_private.h"

/* The most by which a probe at the entry is moved: further on it would measure the time of something else. */
#define MOVE_INSNS 12
#define MOVE_BYTES 64

struct placer *placer__new(struct elf *elf, bool shadow_stack)
{
	struct placer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->elf = elf;
	p->shadow_stack = shadow_stack;
	p->decoder = decoder__new();
	if (!p->decoder) {
		free(p);
		return NULL;
	}
	return p;
}

void placer__free(struct placer *p)
{
	if (!p)
		return;
	decoder__free(p->decoder);
	callees__free(p->callees);
	free(p);
}

/* Reads the names of functions, which means to visit every symbol, so it is done only when needed. */
static int need_callees(struct placer *p)
{
	if (!p->callees)
		p->callees = callees__new(p->elf);
	return p->callees ? 0 : -ENOMEM;
}

bool placer__emulated(struct placer *p, u64 addr)
{
	struct insn insn;
	u64 n = 16;
	const u8 *code = elf__bytes(p->elf, addr, &n);

	return code && decoder__insn(p->decoder, code, n, addr, &insn) && insn.emulated;
}

const char *placer__text(struct placer *p, u64 addr, char *buf, size_t len)
{
	struct insn insn;
	u64 n = 16;
	const u8 *code = elf__bytes(p->elf, addr, &n);

	if (!code || !decoder__insn(p->decoder, code, n, addr, &insn))
		return strncpy(buf, "?", len);
	return decoder__text(p->decoder, buf, len);
}

/* Does an instruction of the function jump to (from, to]? */
static bool jumped_into(const struct graph *g, u64 from, u64 to)
{
	u32 i, k;

	for (i = 0; i < g->n; i++) {
		const struct node *n = &g->nodes[i];
		u64 at = n->target == NONE ? 0 : g->nodes[n->target].insn.addr;

		if ((at > from && at <= to) || (n->pad && n->insn.addr > from && n->insn.addr <= to))
			return true;
		for (k = 0; k < n->n_extra; k++) {
			at = g->nodes[g->extra[n->extra + k]].insn.addr;
			if (at > from && at <= to)
				return true;
		}
	}
	return false;
}

/*
 * The first emulated instruction on the straight line from the entry, as long as the registers and memory that a
 * program reads are unchanged. 0: there is none, for the reason in *why.
 */
static u64 candidate(struct placer *p, u64 addr, u64 size, bool *push, const char **why)
{
	u64 at = addr, len = size && size < MOVE_BYTES ? size : MOVE_BYTES;
	const u8 *code = elf__bytes(p->elf, addr, &len);
	struct insn insn;
	u32 i;

	*why = WHY_NO_CODE;
	for (i = 0; code && i < MOVE_INSNS && at - addr < len; i++) {
		if (!decoder__insn(p->decoder, code + (at - addr), len - (at - addr), at, &insn)) {
			*why = WHY_UNKNOWN_INSN;
			return 0;
		}
		if (insn.emulated && insn.kind == INSN_CALL && p->shadow_stack) {
			*why = WHY_SHADOW_STACK;
			return 0;
		}
		*push = insn.kind == INSN_PLAIN && insn.sp.effect == REG_ADD && insn.emulated;
		if (insn.emulated && !insn.refused)
			return at;
		if (insn.kind != INSN_PLAIN) {
			*why = WHY_STEPPED_JUMP;
			return 0;
		}
		if (insn.sp.effect != REG_SAME) {
			*why = WHY_STEPPED_STACK;
			return 0;
		}
		if (!decoder__keeps_arguments(p->decoder)) {
			*why = WHY_STEPPED_ARGUMENT;
			return 0;
		}
		at += insn.len;
		*why = WHY_STEPPED;
	}
	return 0;
}

static bool is_first_after_endbr(struct placer *p, u64 addr, u64 at)
{
	u64 len = 4;
	const u8 *code = elf__bytes(p->elf, addr, &len);

	return at == addr + 4 && code && len == 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4);
}

/* g is the control flow graph of the function, as far as it is known; NULL: it was not built. */
static void place_entry(struct placer *p, u64 addr, u64 size, const struct graph *g, struct place_site *out,
			const char **why)
{
	bool push = false;
	u64 at = candidate(p, addr, size, &push, why);
	struct graph own = {};

	*out = (struct place_site){ .addr = addr, .kind = PLACE_ENTRY, .cost = PLACE_STEPPED };
	if (!at)
		return;
	if (at == addr) {
		out->cost = PLACE_EMULATED;
		*why = NULL;
		return;
	}
	*why = WHY_ENTERED;
	if (need_callees(p) || callees__symbol_between(p->callees, addr, at))
		return;
	if (!g) {
		if (graph__build(p, &own, addr, size))
			own.why = "there is no memory";
		g = &own;
	}
	/*
	 * a jump to the first push would push twice: no compiler emits one, so this site is good even if the rest of
	 * the function is not understood
	 */
	if (g->why && !(push && is_first_after_endbr(p, addr, at))) {
		*why = g->why;
	} else if (jumped_into(g, addr, at)) {
		*why = WHY_JUMPED_TO;
	} else {
		out->addr = at;
		out->cost = PLACE_EMULATED;
		*why = NULL;
	}
	graph__free(&own);
}

void placer__entry(struct placer *p, u64 addr, u64 size, struct place_site *out, const char **why)
{
	place_entry(p, addr, size, NULL, out, why);
}

static struct place_site site_of(const struct node *n, u8 kind)
{
	struct place_site s = {
		.addr = n->insn.addr,
		.kind = kind,
		.cost = n->insn.emulated ? PLACE_EMULATED : PLACE_STEPPED,
	};
	s32 above = 0;

	if (n->frame.sp_known) {
		above = n->frame.sp;
	} else if (n->frame.bp_known) {
		s.by_frame_pointer = true;
		above = n->frame.bp;
	}
	/* otherwise it is a return or a jump to another function: the stack pointer is the same as at the entry */
	s.above = (u32)above;
	return s;
}

/*
 * Two probes at one address would both run, and the entry may be probed already. A site below the frame of the entry
 * is invalid.
 */
static bool usable(const struct place_site *s)
{
	return !(s->above & 7) && s->above < (1u << 18);
}

static int add_cut(struct graph *g, const struct cut_request *r, u8 kind, struct placement *out, bool *sinks)
{
	u32 nodes[PLACE_SITES_MAX];
	u32 max = PLACE_SITES_MAX - out->n, first = out->n;
	int n = cut__find(g, r, nodes, max, sinks);

	for (int i = 0; i < n; i++) {
		out->sites[out->n] = site_of(&g->nodes[nodes[i]], kind);
		if (!usable(&out->sites[out->n++])) {
			out->n = first;
			return 0;
		}
	}
	return n;
}

static int place_exits(struct placer *p, struct graph *g, struct placement *out)
{
	struct cut_request r = {
		.sink = NODE_EXIT,
		.after = out->sites[0].addr,
		.calls = !p->shadow_stack,
		.stepped = true,
	};
	bool sinks = true;
	int n = add_cut(g, &r, PLACE_EXIT, out, &sinks);

	if (n == -ENOMEM)
		return n;
	out->exits = n > 0 || !sinks;
	if (n < 0)
		out->exits_why = WHY_MANY_EXITS;
	else if (!n && sinks)
		out->exits_why = WHY_SAME_PLACE;
	for (u32 i = 1; i < out->n; i++)
		if (out->sites[i].cost == PLACE_STEPPED)
			out->exits_why = WHY_EXIT_STEPPED;
	return 0;
}

static int place_unwinds(struct placer *p, struct graph *g, struct placement *out)
{
	struct cut_request r = {
		.sink = NODE_UNWIND,
		.after = out->sites[0].addr,
		.calls = !p->shadow_stack,
		/* the call that continues the unwinding is the natural site; jumps come before the cleanup code */
		.foreign_after = p->shadow_stack,
	};
	bool sinks = true;
	int n = add_cut(g, &r, PLACE_UNWIND, out, &sinks);

	if (n == -ENOMEM)
		return n;
	if (n < 0)
		out->unwind_why = WHY_MANY_UNWINDS;
	else if (!n && sinks)
		out->unwind_why = WHY_UNWIND;
	return 0;
}

int placer__function(struct placer *p, u64 addr, u64 size, struct placement *out)
{
	struct graph g = {};
	int err;

	memset(out, 0, sizeof(*out));
	err = need_callees(p);
	if (!err)
		err = graph__build(p, &g, addr, size);
	for (u32 i = 0; !err && i < g.n_parts; i++)
		out->parts[out->n_parts++] = (struct place_part){ g.parts[i].addr, g.parts[i].size };
	if (!err) {
		place_entry(p, addr, size, &g, &out->sites[0], &out->entry_why);
		out->n = 1;
		out->exits_why = g.why;
	}
	if (!err && !g.why)
		err = place_exits(p, &g, out);
	if (!err && !g.why && out->exits)
		err = place_unwinds(p, &g, out);
	graph__free(&g);
	return err;
}
