// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a tree of calls that arrive in order of their ends. The children of a call are the calls of its thread that
 * began after it and are in no other call; they are stored until the call ends.
 */
#include <errno.h>

#include "model/torch_private.h"
#include "util/array.h"
#include "util/saturate.h"

/*
 * The number of calls of a thread that are stored until the call around them ends. When there are more, the older half
 * is passed on as if no other call contained them, and only sums of up to JOINED_MIN calls each are stored for a call
 * around them that may still end. If too many remain, each sum covers twice as many calls, so that each round of
 * joining makes room for a quarter of the calls.
 */
#define PENDING_MAX 16384u
#define JOINED_MIN  64u

/* A trace may have any numbers, and signed ones must not overflow. */
static s64 sum_of(s64 a, s64 b)
{
	return (s64)((u64)a + (u64)b);
}

static u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/*
 * The measured cost of a trap is that with the kernel's code and data in the CPU's caches. If other code has used the
 * caches since the last trap, the program at the entry takes longer, too, and of each call that is known. A trap runs
 * through more of the kernel than the program does: it takes COLD_TRAP times as much longer (measured, docs/torch.md).
 * More than COLD_MAX_NS are an interruption of the program.
 */
#define COLD_TRAP   5
#define COLD_MAX_NS 1000

/* Returns by how much longer the traps of the call's probes took than the measured cost of a trap, each. */
static u64 cold_of(const struct torch *t, const struct torch_span *c)
{
	u64 ns = t->cost_entry ? less(c->entry_ns, t->cost_entry) : 0;

	return COLD_TRAP * (ns < COLD_MAX_NS ? ns : COLD_MAX_NS);
}

/* Calls within it may have been handed out as being in no other call, and then their time was counted. */
static void count_outer(struct torch *t, struct torch_pending *p)
{
	struct torch_span *c = &p->call;
	u64 cost = less(less(c->end - c->start, c->total_ns), p->counted_cost_ns);

	c->outer_ns = less(query__inside(t->q, c->start, c->end), p->counted_ns);
	c->outer_flops = less(c->flops, p->counted_flops);
	p->counted_ns += c->outer_ns;
	p->counted_flops = saturate__sum(p->counted_flops, c->outer_flops);
	p->counted_cost_ns += cost;
	t->coverage.cost_ns += cost;
}

static int hand_out(struct torch *t, struct torch_pending *p, const struct torch_span *parent)
{
	struct torch_span *c = &p->call;

	if (p->is_out)
		return 0;
	p->is_out = true;
	if (!parent)
		count_outer(t, p);
	return t->fn(c, parent, t->arg);
}

static void join(const struct torch *t, struct torch_pending *into, const struct torch_pending *p)
{
	into->n += p->n;
	into->counted_ns += p->counted_ns;
	into->counted_cost_ns += p->counted_cost_ns;
	into->counted_flops = saturate__sum(into->counted_flops, p->counted_flops);
	into->call.end = p->call.end;
	into->call.total_ns += p->call.total_ns;
	into->call.inner += p->call.inner;
	into->call.hits += p->call.hits;
	into->call.programs_ns = saturate__sum(into->call.programs_ns, p->call.programs_ns);
	into->cold_ns = saturate__sum(into->cold_ns, saturate__sum(p->cold_ns, 2 * cold_of(t, &p->call)));
	into->call.bytes = sum_of(into->call.bytes, p->call.bytes);
	into->call.device_ns += p->call.device_ns;
	into->call.flops = saturate__sum(into->call.flops, p->call.flops);
}

static int join_oldest(struct torch *t, struct torch_thread *thread)
{
	u32 all = thread->n_pending, half = all / 2, n = 0;
	int err = 0;

	if (!thread->joined_max)
		thread->joined_max = JOINED_MIN;
	for (u32 i = 0; i < all; i++) {
		struct torch_pending *p = &thread->pending[i];

		if (!err && i < half)
			err = hand_out(t, p, NULL);
		if (n && i < half && thread->pending[n - 1].n + p->n <= thread->joined_max)
			join(t, &thread->pending[n - 1], p);
		else
			thread->pending[n++] = *p;
	}
	if (all - n < all / 4)
		thread->joined_max *= 2;
	thread->n_pending = n;
	return err;
}

/* The call's only child has its name: they are one call. */
static void merge(struct torch *t, struct torch_span *c, const struct torch_span *child)
{
	c->children = child->children;
	c->self_ns = less(c->total_ns, less(child->total_ns, child->self_ns));
	c->bytes = sum_of(c->self_bytes, child->bytes);
	c->self_bytes = sum_of(c->self_bytes, child->self_bytes);
	c->device_ns = c->self_device_ns + child->device_ns;
	c->self_device_ns += child->self_device_ns;
	if (c->has_flops != FLOPS_COUNTED)
		c->has_flops = child->has_flops;
	if (c->sequence < 0)
		c->sequence = child->sequence;
	c->probes_ns = saturate__sum(c->probes_ns, child->probes_ns);
	t->coverage.merged++;
}

/* Returns what the call's own probes take, if c->hits has no hits of the calls within it yet. */
static u64 own_cost(const struct torch *t, const struct torch_span *c)
{
	if (!t->coverage.is_corrected)
		return 0;
	if (c->kind == TORCH_RANGE)
		return saturate__product(2, t->cost_hit);
	return saturate__sum(saturate__sum(t->cost_call, 2 * cold_of(t, c)), saturate__product(c->hits, t->cost_hit));
}

/* Returns what the probes take of the call's duration. */
static u64 cost_of(const struct torch *t, const struct torch_pending *p)
{
	const struct torch_span *c = &p->call;
	u64 traps = saturate__sum(saturate__product(2, c->inner), saturate__sum(c->hits, 1));

	if (!t->coverage.is_corrected)
		return 0;
	return saturate__sum(saturate__product(traps, t->cost_own), saturate__sum(c->programs_ns, p->cold_ns));
}

/*
 * Sums up the children, and with them the call. Ranges and traces of older versions have no sum of what the programs
 * within took: it is estimated by the median of each program.
 */
static void complete(const struct torch *t, struct torch_pending *p, const struct torch_pending *children, u32 n)
{
	u64 of_call = less(t->cost_call, saturate__product(2, t->cost_own)), of_hit = less(t->cost_hit, t->cost_own);
	u64 inner = 0, total = 0, flops = 0, programs = 0, calls = 0, hits;
	struct torch_span *c = &p->call;

	c->bytes = c->self_bytes;
	c->device_ns = c->self_device_ns;
	c->probes_ns = own_cost(t, c);
	p->cold_ns = saturate__product(c->hits, cold_of(t, c));
	hits = c->hits;
	for (u32 i = 0; i < n; i++) {
		/* the start and end of a range are a hit each, which an operator around them has counted */
		u64 ends = c->kind == TORCH_RANGE && children[i].call.kind == TORCH_RANGE ? 2 : 0;

		c->children += children[i].n;
		calls += children[i].n;
		inner += children[i].n + children[i].call.inner;
		programs = saturate__sum(programs, children[i].call.programs_ns);
		p->cold_ns = saturate__sum(p->cold_ns,
					   saturate__sum(children[i].cold_ns, 2 * cold_of(t, &children[i].call)));
		hits += ends;
		c->hits += children[i].call.hits + ends;
		total += children[i].call.total_ns;
		p->counted_ns += children[i].counted_ns;
		p->counted_cost_ns += children[i].counted_cost_ns;
		p->counted_flops = saturate__sum(p->counted_flops, children[i].counted_flops);
		c->bytes = sum_of(c->bytes, children[i].call.bytes);
		c->device_ns += children[i].call.device_ns;
		flops = saturate__sum(flops, children[i].call.flops);
	}
	if (c->has_flops != FLOPS_COUNTED) {
		c->flops = flops;
		c->has_flops = flops ? FLOPS_COUNTED : c->has_flops;
	}
	/* ranges have no count of their own, and calls within may be lost */
	calls += less(c->inner, inner);
	if (c->inner < inner)
		c->inner = inner;
	if (!c->programs_ns)
		c->programs_ns = saturate__sum(programs, saturate__sum(saturate__product(calls, of_call),
								       saturate__product(hits, of_hit)));
	c->total_ns = less(c->end - c->start, cost_of(t, p));
	c->self_ns = less(c->total_ns, total);
}

int torch_tree__add(struct torch *t, const struct torch_span *call)
{
	struct torch_thread *thread = torch__thread(t, call->pid, call->tid);
	struct torch_pending p = { .call = *call, .n = 1 };
	u32 first;
	int err = 0;

	if (!thread)
		return -ENOMEM;
	first = thread->n_pending;
	while (first && thread->pending[first - 1].call.start >= call->start)
		first--;
	complete(t, &p, &thread->pending[first], thread->n_pending - first);
	if (thread->n_pending == first + 1 && !thread->pending[first].is_out &&
	    thread->pending[first].call.name == call->name)
		merge(t, &p.call, &thread->pending[first].call);
	else
		for (u32 i = first; !err && i < thread->n_pending; i++)
			err = hand_out(t, &thread->pending[i], &p.call);
	thread->n_pending = first;
	if (!err && thread->n_pending >= PENDING_MAX)
		err = join_oldest(t, thread);
	if (!err && !array__push(thread->pending, thread->n_pending, p))
		err = -ENOMEM;
	return err;
}

int torch_tree__finish(struct torch *t)
{
	int err = 0;

	MAP_EACH(struct torch_thread *thread, &t->threads)
		for (u32 k = 0; !err && k < thread->n_pending; k++)
			err = hand_out(t, &thread->pending[k], NULL);
	return err;
}
