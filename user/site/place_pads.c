// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The landing pads of a function: the code at which exceptions of its calls continue, by its exception tables. */
#include "site/place_graph.h"

#include <errno.h>

#include "util/array.h"

#define CALLS_MAX 20000 /* call sites of one function */

static void on_call_site(u64 start, u64 size, u64 pad, void *arg)
{
	struct builder *b = arg;

	if (!pad || b->error || b->n_calls == CALLS_MAX)
		return;
	if (!array__push(b->calls, b->n_calls, (struct call_site){ start, size, pad })) {
		b->error = -ENOMEM;
		return;
	}
}

/*
 * The frame at a landing pad is that of its calls without what was pushed only for them: the smallest.
 */
static struct frame frame_of_calls(struct graph *g, const struct call_site *c)
{
	struct frame f = {};
	struct part *part = graph__part(g, c->start);
	u64 i;

	for (i = 0; part && i < c->size && c->start - part->addr + i < part->size; i++) {
		u32 at = part->map[c->start - part->addr + i];
		const struct node *n;

		if (!at || at == MAP_INSIDE)
			continue;
		n = &g->nodes[at - 1];
		if (n->insn.kind != INSN_CALL && n->insn.kind != INSN_CALL_INDIRECT)
			continue;
		if (n->frame.sp_known && (!f.sp_known || n->frame.sp < f.sp)) {
			f.sp_known = true;
			f.sp = n->frame.sp;
		}
		if (n->frame.bp_known) {
			f.bp_known = true;
			f.bp = n->frame.bp;
		}
	}
	return f;
}

static bool holds_call(struct graph *g, const struct call_site *c)
{
	struct part *part = graph__part(g, c->start);

	for (u64 i = 0; part && i < c->size && c->start - part->addr + i < part->size; i++) {
		u32 at = part->map[c->start - part->addr + i];

		if (at && at != MAP_INSIDE &&
		    (g->nodes[at - 1].insn.kind == INSN_CALL || g->nodes[at - 1].insn.kind == INSN_CALL_INDIRECT))
			return true;
	}
	return false;
}

static void add_pad(struct builder *b, const struct call_site *c)
{
	struct frame f = frame_of_calls(b->g, c);
	struct part *part = graph__part(b->g, c->pad);
	u64 start, size;
	u32 node;

	if (!part && (callees__cold(b->p->callees, c->pad, &start, &size) ||
		      !elf__function_at(b->p->elf, c->pad, &start, &size)))
		part = builder__add_part(b, start, size);
	if (!part) {
		builder__refuse(b, WHY_PAD);
		return;
	}
	node = builder__visit(b, part, c->pad, NONE, f);
	if (node == NONE)
		return;
	b->g->nodes[node].pad = true;
	b->g->pads = true;
	builder__discover(b);
}

void builder__find_pads(struct builder *b)
{
	bool has, more = true;
	u32 i;

	while (more && !b->g->why && !b->error) {
		more = false;
		for (; b->parts_seen < b->g->n_parts && !b->error; b->parts_seen++)
			if (elf__each_call_site(b->p->elf, b->g->parts[b->parts_seen].addr, on_call_site, b, &has))
				builder__refuse(b, WHY_TABLES);
		for (i = 0; i < b->n_calls && !b->g->why && !b->error; i++) {
			struct call_site c = b->calls[i];
			u32 at = graph__at(b->g, c.pad);

			if (at != NONE && b->g->nodes[at].pad)
				continue;
			if (!holds_call(b->g, &c))
				continue;
			add_pad(b, &c);
			more = true;
		}
	}
	/* a call whose exception is caught here is not a way out */
	for (i = 0; i < b->n_calls && !b->g->why && !b->error; i++) {
		struct part *part = graph__part(b->g, b->calls[i].start);
		u64 at, from = part ? b->calls[i].start - part->addr : 0;

		for (at = from; part && at < part->size && at - from < b->calls[i].size; at++)
			if (part->map[at] && part->map[at] != MAP_INSIDE &&
			    b->g->nodes[part->map[at] - 1].role == NODE_UNWIND)
				b->g->nodes[part->map[at] - 1].role = NODE_FOREIGN;
	}
}
