// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums the operators of each step, and finds where between the phases they were. */
#include <errno.h>
#include <string.h>

#include "model/torch_steps_private.h"
#include "util/search.h"

struct thread {
	u32 pid, tid;
};

struct reading {
	struct torch_steps *steps;
	struct torch_gaps *gaps;
	struct map copies; /* u32 name -> u32: its index in torch_loop.copies plus one, TORCH_COPIES + 1: it has none */
	struct map loops; /* struct thread -> u32: index of its loop plus one */
	u32 to_cpu; /* the name aten::_to_cpu; 0: not seen yet */
};

static int add_part(struct torch_loop *l, u32 which, const struct torch_span *c)
{
	struct torch_part *p = map__get(&l->parts[which], &c->name);

	if (!p)
		return -ENOMEM;
	p->name = c->name;
	p->calls++;
	p->self_ns += c->self_ns;
	return 0;
}

const char *torch_copies__name(u32 i)
{
	static const char *const names[TORCH_COPIES] = { "aten::_to_copy", "aten::copy_",
							 "aten::item",	   "aten::_local_scalar_dense",
							 "aten::nonzero",  "aten::is_nonzero" };

	return names[i];
}

/* Returns the index in torch_loop.copies, TORCH_COPIES: it is none of these operators; *failed: there was no memory. */
static u32 copies_of(struct reading *r, const struct torch_span *c, bool *failed)
{
	u32 *known = map__get(&r->copies, &c->name), i = 0;

	*failed |= !known;
	if (!known || c->kind != TORCH_OPERATOR)
		return TORCH_COPIES;
	if (!*known) {
		while (i < TORCH_COPIES && strcmp(torch__name(r->steps->torch, c->name), torch_copies__name(i)) != 0)
			i++;
		*known = i + 1;
	}
	return *known - 1;
}

static int add_copies(struct reading *r, struct torch_loop *l, const struct torch_span *c,
		      const struct torch_span *parent)
{
	bool failed = false;
	u32 i = copies_of(r, c, &failed);

	if (i == TORCH_COPIES || (parent && copies_of(r, parent, &failed) < TORCH_COPIES))
		return failed ? -ENOMEM : 0;
	l->copies[i].calls++;
	l->copies[i].ns += c->total_ns;
	return 0;
}

/* An operator that calls aten::_to_cpu several times is one call. */
static int add_fallback(struct reading *r, struct torch_loop *l, const struct torch_span *c,
			const struct torch_span *parent)
{
	struct torch_fallback *f;

	if (c->kind != TORCH_OPERATOR || !parent || parent->kind != TORCH_OPERATOR)
		return 0;
	if (!r->to_cpu && !strcmp(torch__name(r->steps->torch, c->name), "aten::_to_cpu"))
		r->to_cpu = c->name;
	if (c->name != r->to_cpu)
		return 0;
	f = map__get(&l->fallbacks, &parent->name);
	if (!f)
		return -ENOMEM;
	if (!f->calls || f->last != parent->start) {
		f->calls++;
		f->ns += parent->total_ns;
		f->last = parent->start;
	}
	return 0;
}

static void add_to_gap(struct torch_gap *g, const struct torch_span *c)
{
	u64 last = c->end < g->end ? c->end : g->end;

	if (!g->first || c->start < g->first)
		g->first = c->start;
	if (last > g->last)
		g->last = last;
}

/* Operators that have more between them are separated by other code of the program, not by the cost of a call. */
#define BETWEEN_NS 200000u

/* Adds the time since the operator or range before c, which is in no operator. */
static void add_distance(struct torch_step *step, struct torch_gap *g, const struct torch_span *c,
			 const struct torch_span *parent, u64 probes_ns)
{
	struct torch_last *last = &g->outer[parent != NULL];
	u64 start = parent ? parent->start : 0, ns = c->start - last->end;

	ns = ns > probes_ns ? ns - probes_ns : 0;
	if (last->end && last->parent == start && c->start >= last->end && ns <= BETWEEN_NS) {
		step->distances++;
		step->between_ns += ns;
	}
	*last = (struct torch_last){ c->end, start };
}

static void add_outer(const struct reading *r, struct torch_step *step, struct torch_gap *g, const struct torch_span *c,
		      const struct torch_span *parent)
{
	add_distance(step, g, c, parent, torch__coverage(r->steps->torch)->outside_ns);
	if (c->kind != TORCH_OPERATOR)
		return;
	step->operators++;
	step->operators_ns += c->total_ns;
}

static int on_call(const struct torch_span *c, const struct torch_span *parent, void *arg)
{
	struct thread thread = { c->pid, c->tid };
	struct reading *r = arg;
	const u32 *number = map__find(&r->loops, &thread);
	struct torch_loop *l = number && *number ? &r->steps->loops[*number - 1] : NULL;
	struct torch_step *step;
	struct torch_gap *gaps;
	u32 i;
	int err = 0;

	if (!l)
		return 0;
	i = (u32)SEARCH(l->n, k, l->steps[k].end <= c->start);
	if (i == l->n || c->start < l->steps[i].start)
		return 0;
	step = &l->steps[i];
	l->probes_ns += c->tid == l->tid ? c->probes_ns : 0;
	if (i == l->slowest)
		err = add_part(l, 0, c);
	if (!err && i == l->typical)
		err = add_part(l, 1, c);
	if (!err)
		err = add_copies(r, l, c, parent);
	if (!err)
		err = add_fallback(r, l, c, parent);
	if (err || c->kind == TORCH_NODE)
		return err;
	step->calls += c->kind == TORCH_OPERATOR;
	if (c->tid != l->tid)
		return 0;
	gaps = r->gaps->list + step->first_gap;
	i = (u32)SEARCH(step->n_gaps, k, gaps[k].end <= c->start);
	if (i == step->n_gaps || c->start < gaps[i].start)
		return 0;
	if (c->kind == TORCH_OPERATOR)
		add_to_gap(&gaps[i], c);
	if (gaps[i].phase == PHASE_FORWARD && (!parent || parent->kind == TORCH_RANGE))
		add_outer(r, step, &gaps[i], c, parent);
	return 0;
}

/* Calls of this thread are of the loop; those of a thread that two loops have are of neither. 0 or -ENOMEM. */
static int add_thread(struct reading *r, u32 loop, u32 tid)
{
	struct thread thread = { r->steps->loops[loop].pid, tid };
	bool is_shared = map__find(&r->loops, &thread) != NULL;
	u32 *number = map__get(&r->loops, &thread);

	if (number)
		*number = is_shared ? 0 : loop + 1;
	return number ? 0 : -ENOMEM;
}

int torch_forward__read(struct torch_steps *s, struct torch_gaps *gaps)
{
	struct reading r = { .steps = s, .gaps = gaps };
	int err = 0;

	map__init(&r.copies, sizeof(u32), sizeof(u32));
	map__init(&r.loops, sizeof(struct thread), sizeof(u32));
	for (u32 i = 0; !err && i < s->n; i++) {
		err = add_thread(&r, i, s->loops[i].tid);
		for (u32 k = 0; !err && k < s->loops[i].n_engines; k++)
			err = add_thread(&r, i, s->loops[i].engines[k]);
	}
	if (!err)
		err = torch__read(s->torch, on_call, &r);
	MAPS_FREE(&r.copies, &r.loops);
	return err;
}
