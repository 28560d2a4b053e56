// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses the instructions to probe so that every way out of the function passes exactly one of them, exactly once: a
 * minimum cut of the control-flow graph.
 *
 * Each instruction has a point before it and a point after it. The cut divides all points into those before the
 * probes and those after them. Two points that are connected without passing an instruction that can carry a probe
 * must be in the same part, and no path may lead from the second part back to the first, or a probe would be hit
 * twice. So the points connected by an edge of the graph form one set, whatever the direction of the edge, and so do
 * the two points of an instruction that can't carry a probe. The instructions that can are the arcs between these
 * sets, and the cut chooses among them. That graph is small.
 *
 * In the first part are the entry, the landing pads and the points after calls that may run foreign code; in the
 * second part are the ways out. Of all minimum cuts the one nearest to the ways out is taken, since it measures the
 * time best.
 */
#include <errno.h>
#include <stdlib.h>

#include "site/place_private.h"

#define CHEAP	   2
#define CHEAP_CALL 3 /* so that a jump is preferred */
#define DEAR	   400

struct arc {
	u32 node;
	u32 from, to; /* numbers of sets */
	u32 capacity;
	s32 flow;
};

struct cut {
	const struct graph *g;
	const struct cut_request *r;
	/* of sets (union-find): 2 * node is the point before it, + 1 the point after it; then source and sink */
	u32 *parent;
	u32 source, sink;
	struct arc *arcs;
	u32 n_arcs;
	u32 *first; /* by set: index into by_set */
	u32 *by_set; /* the arcs that begin or end at a set */
	u32 *queue, *arrived_by; /* the arc by which the search reached a set, or NONE */
};

static u32 find(struct cut *c, u32 x)
{
	while (c->parent[x] != x) {
		c->parent[x] = c->parent[c->parent[x]];
		x = c->parent[x];
	}
	return x;
}

static void bind(struct cut *c, u32 a, u32 b)
{
	c->parent[find(c, a)] = find(c, b);
}

/* The cost of a probe on the instruction; 0: it can't have one. */
static u32 capacity_of(const struct cut *c, const struct node *n)
{
	bool call = n->insn.kind == INSN_CALL || n->insn.kind == INSN_CALL_INDIRECT;
	bool last = n->role == NODE_EXIT;

	if (n->not_code || n->insn.refused || (!n->frame.sp_known && !n->frame.bp_known && !last))
		return 0;
	if (call && !c->r->calls)
		return 0;
	if (n->insn.emulated)
		return call ? CHEAP_CALL : CHEAP;
	return last && c->r->stepped ? DEAR : 0;
}

static bool is_before(const struct cut *c, const struct node *n)
{
	if (c->r->sink == NODE_UNWIND)
		return n->role == NODE_EXIT || (n->role == NODE_FOREIGN && !c->r->foreign_after);
	return n->role == NODE_UNWIND || n->role == NODE_FOREIGN;
}

static void bind_all(struct cut *c, bool *sinks)
{
	const struct graph *g = c->g;
	u64 entry = g->nodes[0].insn.addr;

	*sinks = false;
	for (u32 i = 0; i < g->n; i++) {
		const struct node *n = &g->nodes[i];

		if (n->next != NONE)
			bind(c, 2 * i + 1, 2 * n->next);
		if (n->target != NONE)
			bind(c, 2 * i + 1, 2 * n->target);
		for (u32 k = 0; k < n->n_extra; k++)
			bind(c, 2 * i + 1, 2 * g->extra[n->extra + k]);
		if (!capacity_of(c, n))
			bind(c, 2 * i, 2 * i + 1);
		if (n->pad)
			bind(c, c->source, 2 * i);
		if ((n->insn.addr >= entry && n->insn.addr <= c->r->after && !n->not_code) || is_before(c, n)) {
			bind(c, c->source, 2 * i);
			bind(c, c->source, 2 * i + 1);
		}
		if (n->role == c->r->sink) {
			*sinks = true;
			bind(c, c->sink, 2 * i + 1);
		}
	}
	bind(c, c->source, 0);
}

/* Adds an arc for each instruction that can carry a probe and whose two points are in different sets. */
static void collect_arcs(struct cut *c)
{
	const struct graph *g = c->g;

	for (u32 i = 0; i < g->n; i++) {
		u32 capacity = capacity_of(c, &g->nodes[i]);
		u32 from = find(c, 2 * i), to = find(c, 2 * i + 1);

		if (capacity && from != to)
			c->arcs[c->n_arcs++] = (struct arc){ i, from, to, capacity, 0 };
	}
}

static int index_arcs(struct cut *c)
{
	u32 sets = 2 * c->g->n + 2, i;

	c->first = calloc(sets + 1, sizeof(u32));
	c->by_set = calloc(2 * (u64)c->n_arcs + 1, sizeof(u32));
	c->queue = calloc(sets, sizeof(u32));
	c->arrived_by = calloc(sets, sizeof(u32));
	if (!c->first || !c->by_set || !c->queue || !c->arrived_by)
		return -ENOMEM;
	for (i = 0; i < c->n_arcs; i++) {
		c->first[c->arcs[i].from]++;
		c->first[c->arcs[i].to]++;
	}
	for (i = 1; i <= sets; i++)
		c->first[i] += c->first[i - 1];
	for (i = 0; i < c->n_arcs; i++) {
		c->by_set[--c->first[c->arcs[i].from]] = i;
		c->by_set[--c->first[c->arcs[i].to]] = i;
	}
	return 0;
}

/*
 * The residual capacity of an arc. It is unlimited backwards: if the head of an arc is in the first part, its tail
 * has to be there, too, or the path from the head to the tail would cross the cut backwards.
 */
static u32 residual_of(const struct arc *a, bool forwards)
{
	return forwards ? a->capacity - a->flow : 0x7fffffff;
}

/* Searches a path from source to sink with residual capacity; the path is in came[]. */
static bool search(struct cut *c)
{
	u32 sets = 2 * c->g->n + 2, source = find(c, c->source), sink = find(c, c->sink);
	u32 head = 0, tail = 0, i, k;

	for (i = 0; i < sets; i++)
		c->arrived_by[i] = NONE;
	c->queue[tail++] = source;
	c->arrived_by[source] = NONE - 1;
	while (head < tail && c->arrived_by[sink] == NONE) {
		u32 at = c->queue[head++];

		for (k = c->first[at]; k < c->first[at + 1]; k++) {
			const struct arc *a = &c->arcs[c->by_set[k]];
			u32 to = a->from == at ? a->to : a->from;

			if (c->arrived_by[to] != NONE || !residual_of(a, a->from == at))
				continue;
			c->arrived_by[to] = c->by_set[k];
			c->queue[tail++] = to;
		}
	}
	return c->arrived_by[sink] != NONE;
}

static u32 push_flow(struct cut *c)
{
	u32 source = find(c, c->source), sink = find(c, c->sink), least = 0x7fffffff, at;

	for (at = sink; at != source;) {
		const struct arc *a = &c->arcs[c->arrived_by[at]];
		bool forwards = a->to == at;

		if (residual_of(a, forwards) < least)
			least = residual_of(a, forwards);
		at = forwards ? a->from : a->to;
	}
	for (at = sink; at != source && least != 0x7fffffff;) {
		struct arc *a = &c->arcs[c->arrived_by[at]];
		bool forwards = a->to == at;

		a->flow += forwards ? (s32)least : -(s32)least;
		at = forwards ? a->from : a->to;
	}
	return least;
}

/* The second part is what can still reach the sink. The arcs into it are the cut. */
static int border(struct cut *c, u32 *nodes, u32 max)
{
	u32 sets = 2 * c->g->n + 2, head = 0, tail = 0, i, k;
	int n = 0;

	for (i = 0; i < sets; i++)
		c->arrived_by[i] = NONE;
	c->queue[tail++] = find(c, c->sink);
	c->arrived_by[find(c, c->sink)] = 0;
	while (head < tail) {
		u32 at = c->queue[head++];

		for (k = c->first[at]; k < c->first[at + 1]; k++) {
			const struct arc *a = &c->arcs[c->by_set[k]];
			u32 from = a->to == at ? a->from : a->to;

			/* the arc leads from `from` to `at` */
			if (c->arrived_by[from] != NONE || !residual_of(a, a->to == at))
				continue;
			c->arrived_by[from] = 0;
			c->queue[tail++] = from;
		}
	}
	for (i = 0; i < c->n_arcs; i++) {
		if (c->arrived_by[c->arcs[i].from] != NONE || c->arrived_by[c->arcs[i].to] == NONE)
			continue;
		if ((u32)n == max)
			return -1;
		nodes[n++] = c->arcs[i].node;
	}
	return n;
}

static int solve(struct cut *c, u32 *nodes, u32 max)
{
	u32 total = 0, flow;

	if (find(c, c->source) == find(c, c->sink))
		return 0;
	collect_arcs(c);
	if (index_arcs(c))
		return -ENOMEM;
	while (search(c)) {
		flow = push_flow(c);
		total += flow;
		if (flow == 0x7fffffff)
			return 0;
		if (total > DEAR * max)
			return -1;
	}
	return border(c, nodes, max);
}

int cut__find(const struct graph *g, const struct cut_request *r, u32 *nodes, u32 max, bool *sinks)
{
	struct cut c = { .g = g, .r = r, .source = 2 * g->n, .sink = 2 * g->n + 1 };
	u32 i;
	int n = -ENOMEM;

	c.parent = calloc(2 * (u64)g->n + 2, sizeof(*c.parent));
	c.arcs = calloc((u64)g->n + 1, sizeof(*c.arcs));
	for (i = 0; c.parent && i < 2 * g->n + 2; i++)
		c.parent[i] = i;
	if (c.parent && c.arcs) {
		bind_all(&c, sinks);
		n = solve(&c, nodes, max);
	}
	free(c.parent);
	free(c.arcs);
	free(c.first);
	free(c.by_set);
	free(c.queue);
	free(c.arrived_by);
	return n;
}
