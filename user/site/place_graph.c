// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The control-flow graph of a function, read from its code. Instructions are found by following the control flow from
 * the entry and the landing pads, never by decoding in sequence. For each instruction the graph has what is known of
 * the stack pointer, which distinguishes a jump to a part of the same function, which still has its frame, from a
 * jump to another function. If anything does not fit (two instructions that overlap, a jump with unknown targets),
 * the function counts as not understood.
 *
 * Nothing here is recursive, and everything has a limit, because the code is untrusted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "site/place_graph.h"
#include "util/array.h"

#define CODE_MAX  (1 << 20) /* bytes of a function */
#define NODES_MAX 200000
#define TABLE_MAX 4096 /* targets of one jump */
#define EXTRA_MAX 100000 /* targets of all tables */
#define BACK_MAX  48 /* instructions that are searched for a jump table */

void builder__refuse(struct builder *b, const char *why)
{
	if (!b->g->why)
		b->g->why = why;
}

struct part *graph__part(struct graph *g, u64 addr)
{
	for (u32 i = 0; i < g->n_parts; i++)
		if (addr >= g->parts[i].addr && addr - g->parts[i].addr < g->parts[i].size)
			return &g->parts[i];
	return NULL;
}

u32 graph__at(const struct graph *g, u64 addr)
{
	const struct part *part = graph__part((struct graph *)g, addr);
	u32 at = part ? part->map[addr - part->addr] : 0;

	return at && at != MAP_INSIDE ? at - 1 : NONE;
}

struct part *builder__add_part(struct builder *b, u64 addr, u64 size)
{
	struct graph *g = b->g;
	struct part *part = &g->parts[g->n_parts];
	u64 len = size;

	if (g->n_parts == PARTS_MAX || !size || size > CODE_MAX) {
		builder__refuse(b, size > CODE_MAX ? WHY_TOO_LARGE : WHY_PARTS);
		return NULL;
	}
	part->code = elf__bytes(b->p->elf, addr, &len);
	if (!part->code || len != size) {
		builder__refuse(b, WHY_NO_CODE);
		return NULL;
	}
	part->map = calloc(size, sizeof(*part->map));
	if (!part->map) {
		b->error = -ENOMEM;
		return NULL;
	}
	part->addr = addr;
	part->size = size;
	g->n_parts++;
	return part;
}

static u32 new_node(struct builder *b)
{
	struct graph *g = b->g;

	if (g->n == NODES_MAX) {
		builder__refuse(b, WHY_TOO_LARGE);
		return NONE;
	}
	if (!array__room(g->nodes, g->n)) {
		b->error = -ENOMEM;
		return NONE;
	}
	memset(&g->nodes[g->n], 0, sizeof(*g->nodes));
	g->nodes[g->n].next = g->nodes[g->n].target = g->nodes[g->n].before = NONE;
	return g->n++;
}

static void push_work(struct builder *b, u32 node)
{
	if (!array__push(b->work, b->n_work, node)) {
		b->error = -ENOMEM;
		return;
	}
}

u32 builder__visit(struct builder *b, struct part *part, u64 addr, u32 before, struct frame frame)
{
	u64 at = addr - part->addr, i;
	struct insn insn;
	u32 node;

	if (part->map[at] == MAP_INSIDE) {
		builder__refuse(b, WHY_OVERLAP);
		return NONE;
	}
	if (part->map[at])
		return part->map[at] - 1;
	if (!decoder__insn(b->p->decoder, part->code + at, part->size - at, addr, &insn)) {
		builder__refuse(b, WHY_UNKNOWN_INSN);
		return NONE;
	}
	for (i = 1; i < insn.len; i++) {
		if (part->map[at + i]) {
			builder__refuse(b, WHY_OVERLAP);
			return NONE;
		}
		part->map[at + i] = MAP_INSIDE;
	}
	node = new_node(b);
	if (node == NONE)
		return NONE;
	part->map[at] = node + 1;
	b->g->nodes[node].insn = insn;
	b->g->nodes[node].before = before;
	b->g->nodes[node].frame = frame;
	push_work(b, node);
	return node;
}

static void change(bool *known, s32 *value, const struct reg_change *c, const struct frame *was)
{
	s64 result;

	switch (c->effect) {
	case REG_SAME:
		return;
	case REG_ADD:
		result = (s64)*value - c->by;
		break;
	case REG_FROM_SP:
		*known = was->sp_known;
		result = (s64)was->sp - c->by;
		break;
	case REG_FROM_BP:
		*known = was->bp_known;
		result = (s64)was->bp - c->by;
		break;
	default:
		*known = false;
		result = 0;
	}
	if (result < -(1 << 24) || result > 1 << 24)
		*known = false;
	*value = *known ? (s32)result : 0;
}

static struct frame frame_after(const struct node *n)
{
	struct frame f = n->frame;

	change(&f.sp_known, &f.sp, &n->insn.sp, &n->frame);
	change(&f.bp_known, &f.bp, &n->insn.bp, &n->frame);
	return f;
}

/* Adds an exit for a conditional jump out of the function, whose other branch stays in the function. */
static u32 add_way_out(struct builder *b, u64 addr)
{
	u32 node = new_node(b);

	if (node == NONE)
		return NONE;
	b->g->nodes[node].insn = (struct insn){ .addr = addr, .kind = INSN_STOP };
	b->g->nodes[node].not_code = true;
	b->g->nodes[node].role = NODE_EXIT;
	return node;
}

/*
 * The part of this function to which a jump with a frame leads, or the function's own .cold part. NULL: another
 * function.
 */
static struct part *part_to(struct builder *b, u64 addr, const struct frame *f)
{
	struct part *part = graph__part(b->g, addr);
	u64 start, size;

	if (part)
		return part;
	if (callees__cold(b->p->callees, addr, &start, &size))
		return builder__add_part(b, start, size);
	if (f->sp_known && !f->sp)
		return NULL;
	if (!f->sp_known) {
		builder__refuse(b, WHY_LEAVES_STACK);
		return NULL;
	}
	if (elf__function_at(b->p->elf, addr, &start, &size)) {
		builder__refuse(b, WHY_LEAVES_CODE);
		return NULL;
	}
	return builder__add_part(b, start, size);
}

/* The target of a direct jump: a node of the function, or a way out (only then the jump has role NODE_EXIT). */
static void follow_jump(struct builder *b, u32 node, const struct frame *f)
{
	struct node *n = &b->g->nodes[node];
	u64 target = n->insn.target;
	bool cond = n->insn.kind == INSN_COND;
	struct part *part = part_to(b, target, f);
	bool self = target == b->entry && f->sp_known && !f->sp && n->insn.addr != b->entry;
	u32 to;

	if (b->g->why || b->error)
		return;
	if (part && !self) {
		to = builder__visit(b, part, target, node, *f);
		b->g->nodes[node].target = to;
	} else if (cond) {
		to = add_way_out(b, target);
		b->g->nodes[node].target = to;
	} else {
		n->role = NODE_EXIT;
	}
}

static bool add_extra(struct builder *b, u32 to)
{
	struct graph *g = b->g;

	if (g->n_extra == EXTRA_MAX) {
		builder__refuse(b, WHY_JUMP_TABLES);
		return false;
	}
	if (!array__push(g->extra, g->n_extra, to)) {
		b->error = -ENOMEM;
		return false;
	}
	return true;
}

static u32 find_table(struct builder *b, u32 node, struct jump_table *table)
{
	const u8 *code[BACK_MAX];
	u64 addrs[BACK_MAX];
	struct part *part;
	u32 n = 0;

	for (u32 at = node; at != NONE && n < BACK_MAX; at = b->g->nodes[at].before) {
		const struct node *i = &b->g->nodes[at];

		part = graph__part(b->g, i->insn.addr);
		if (!part || part->size - (i->insn.addr - part->addr) < i->insn.len)
			break;
		addrs[n] = i->insn.addr;
		code[n++] = part->code + (i->insn.addr - part->addr);
	}
	return decoder__jump_table(b->p->decoder, code, addrs, n, table) ? n : 0;
}

static u64 table_entry(const struct jump_table *t, const u8 *p)
{
	u64 value = 0;

	memcpy(&value, p, t->entry_size);
	if (t->entry_size == 4)
		value = (u64)(s64)(s32)value;
	return t->base + value;
}

/* true: the targets are known. */
static bool follow_table(struct builder *b, u32 node, const struct frame *f)
{
	struct jump_table t;
	struct part *part;
	u32 i, to, first = b->g->n_extra;
	const u8 *data;
	u64 len;

	if (!find_table(b, node, &t))
		return false;
	len = (u64)(t.n ? t.n : TABLE_MAX) * t.entry_size;
	data = elf__bytes(b->p->elf, t.addr, &len);
	if (!data || (t.n && len / t.entry_size < t.n))
		return false;
	for (i = 0; i < len / t.entry_size; i++) {
		u64 target = table_entry(&t, data + (u64)i * t.entry_size);
		u64 start, size;

		part = graph__part(b->g, target);
		/* the function's own .cold part, as for a direct jump */
		if (!part && t.n && callees__cold(b->p->callees, target, &start, &size))
			part = builder__add_part(b, start, size);
		if (!part) {
			if (t.n) /* a jump with a known bound stays in this function */
				return false;
			break;
		}
		to = builder__visit(b, part, target, node, *f);
		if (to == NONE || !add_extra(b, to))
			return false;
	}
	b->g->nodes[node].extra = first;
	b->g->nodes[node].n_extra = b->g->n_extra - first;
	return b->g->n_extra > first;
}

static void follow_indirect(struct builder *b, u32 node, const struct frame *f)
{
	if (follow_table(b, node, f) || b->error)
		return;
	if (f->sp_known && !f->sp)
		b->g->nodes[node].role = NODE_EXIT; /* a jump to another function, through a pointer */
	else
		builder__refuse(b, WHY_INDIRECT);
}

static void follow_next(struct builder *b, u32 node)
{
	struct node *n = &b->g->nodes[node];
	u64 addr = n->insn.addr + n->insn.len;
	struct part *part = graph__part(b->g, n->insn.addr);
	u32 to;

	if (addr - part->addr >= part->size) {
		/* a call of a function that does not return, and whose name is unknown */
		if (n->insn.kind == INSN_CALL || n->insn.kind == INSN_CALL_INDIRECT)
			return;
		part = graph__part(b->g, addr);
		if (!part) {
			builder__refuse(b, WHY_PAST_END);
			return;
		}
	}
	to = builder__visit(b, part, addr, node, frame_after(n));
	b->g->nodes[node].next = to;
}

static void follow_call(struct builder *b, u32 node)
{
	struct node *n = &b->g->nodes[node];
	enum callee callee = CALLEE_UNKNOWN;

	if (n->insn.kind == INSN_CALL)
		callee = callees__at(b->p->callees, n->insn.target);
	else if (n->insn.target)
		callee = callees__slot(b->p->callees, n->insn.target);
	switch (callee) {
	case CALLEE_DIES:
		n->role = NODE_DEAD;
		return;
	case CALLEE_UNWINDS:
		n->role = NODE_UNWIND;
		return;
	case CALLEE_HARMLESS:
		break;
	default:
		n->role = NODE_FOREIGN;
	}
	follow_next(b, node);
}

static void follow(struct builder *b, u32 node)
{
	struct frame f = frame_after(&b->g->nodes[node]);

	switch (b->g->nodes[node].insn.kind) {
	case INSN_COND:
		follow_jump(b, node, &f);
		if (!b->g->why && !b->error)
			follow_next(b, node);
		break;
	case INSN_JUMP:
		follow_jump(b, node, &f);
		break;
	case INSN_JUMP_INDIRECT:
		follow_indirect(b, node, &f);
		break;
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		follow_call(b, node);
		break;
	case INSN_RET:
		b->g->nodes[node].role = NODE_EXIT;
		break;
	case INSN_STOP:
		b->g->nodes[node].role = NODE_DEAD;
		break;
	default:
		follow_next(b, node);
	}
}

void builder__discover(struct builder *b)
{
	while (b->n_work && !b->g->why && !b->error)
		follow(b, b->work[--b->n_work]);
}

/* Removes from `to` what is not the same on all paths to it. Returns true if something was removed. */
static bool merge(struct node *to, const struct frame *f)
{
	bool was_sp = to->frame.sp_known, was_bp = to->frame.bp_known;

	to->frame.sp_known &= f->sp_known && f->sp == to->frame.sp;
	to->frame.bp_known &= f->bp_known && f->bp == to->frame.bp;
	return was_sp != to->frame.sp_known || was_bp != to->frame.bp_known;
}

/* Each node has the frame of the first path to it: merges those of all paths. */
static void settle_frames(struct builder *b)
{
	struct graph *g = b->g;
	u32 i, k;

	b->n_work = 0;
	for (i = 0; i < g->n; i++)
		push_work(b, i);
	/* a node can change only twice, so this loop ends */
	while (b->n_work && !b->error) {
		u32 at = b->work[--b->n_work];
		struct frame f;

		if (g->nodes[at].not_code)
			continue;
		f = frame_after(&g->nodes[at]);
		if (g->nodes[at].next != NONE && merge(&g->nodes[g->nodes[at].next], &f))
			push_work(b, g->nodes[at].next);
		if (g->nodes[at].target != NONE && merge(&g->nodes[g->nodes[at].target], &f))
			push_work(b, g->nodes[at].target);
		for (k = 0; k < g->nodes[at].n_extra; k++)
			if (merge(&g->nodes[g->extra[g->nodes[at].extra + k]], &f))
				push_work(b, g->extra[g->nodes[at].extra + k]);
	}
}

int graph__build(struct placer *p, struct graph *g, u64 addr, u64 size)
{
	struct builder b = { .p = p, .g = g, .entry = addr };
	struct frame f = { .sp_known = true };
	struct part *part;
	u64 start;

	memset(g, 0, sizeof(*g));
	if (!size && (elf__function_at(p->elf, addr, &start, &size) || start != addr))
		builder__refuse(&b, WHY_NO_SIZE);
	part = g->why ? NULL : builder__add_part(&b, addr, size);
	if (part) {
		builder__visit(&b, part, addr, NONE, f);
		builder__discover(&b);
		builder__find_pads(&b);
		settle_frames(&b);
	}
	free(b.work);
	free(b.calls);
	return b.error;
}

void graph__free(struct graph *g)
{
	for (u32 i = 0; i < g->n_parts; i++)
		free(g->parts[i].map);
	free(g->nodes);
	free(g->extra);
	memset(g, 0, sizeof(*g));
}
