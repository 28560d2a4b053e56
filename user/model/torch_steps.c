// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/torch_steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/texts.h"
#include "model/torch_steps_private.h"
#include "util/array.h"
#include "util/compare.h"

const char *torch_phase__name(enum torch_phase phase)
{
	static const char *const names[PHASES] = { "data loading",  "the forward pass", "the backward pass",
						   "the optimizer", "collectives",	"other code" };

	return names[phase];
}

/* Threads of a trace that may be loops: others are counted and ignored. Each costs a scan of all phases. */
#define LOOPS_MAX 64

/* What one loop is made of */
struct making {
	struct torch_loop *loop;
	struct torch_mark *marks; /* of its thread, and backward passes of other threads; by start, disjoint */
	u32 n;
	struct torch_gaps *gaps;
};

struct range {
	u32 n;
	bool is_step;
};

/*
 * Finds the range whose ends are the ends of steps: of several optimizers the one that steps least often, of these the
 * one that stepped first. One that stepped once ends no step. Without an optimizer it is the data loader; 0: there is
 * none. 0 or -ENOMEM.
 */
static int find_boundary(const struct torch_marks *m, u32 from, u32 to, u32 *boundary, bool *by_optimizer)
{
	struct map ranges; /* u32 -> struct range */
	u32 loader = 0, least = ~0u;

	*boundary = 0;
	map__init(&ranges, sizeof(u32), sizeof(struct range));
	for (u32 i = from; i < to; i++) {
		const struct torch_mark *mark = &m->list[i];
		struct range *r = mark->marked ? NULL : map__get(&ranges, &mark->range);

		if (mark->marked)
			continue;
		if (!r) {
			map__free(&ranges);
			return -ENOMEM;
		}
		r->n++;
		r->is_step = mark->is_step;
		loader = mark->phase == PHASE_DATA ? mark->range : loader;
	}
	for (u32 i = 0; i < ranges.n; i++) {
		const struct range *r = map__value(&ranges, i);

		if (!r->is_step || r->n < 2 || r->n >= least)
			continue;
		least = r->n;
		*boundary = *(const u32 *)map__key(&ranges, i);
	}
	*by_optimizer = *boundary;
	if (!*boundary)
		*boundary = loader;
	map__free(&ranges);
	return 0;
}

COMPARE_BY(by_start, struct torch_mark, ASCENDING(start))

static bool is_same_thread(const struct torch_mark *a, const struct torch_mark *b)
{
	return a->pid == b->pid && a->tid == b->tid;
}

/*
 * Does the thread of all->list[i], whose marks begin there, evaluate nodes and nothing else, as PyTorch's own threads
 * for GPUs do? Hooks of nodes, such as those of DDP, may call collectives in it.
 */
static bool is_engine(const struct torch_marks *all, u32 i)
{
	u32 first = i;
	bool has_nodes = false;

	for (; i < all->n && is_same_thread(&all->list[i], &all->list[first]); i++) {
		if (all->list[i].phase != PHASE_BACKWARD && all->list[i].phase != PHASE_COLLECTIVE)
			return false;
		has_nodes |= all->list[i].phase == PHASE_BACKWARD;
	}
	return has_nodes;
}

/*
 * A program may pass its forward and backward pass to the optimizer's step() as a closure, as Lightning does: then the
 * optimizer's phase begins after the last backward pass within it.
 */
static void leave_out_closures(struct making *m)
{
	struct torch_mark *step = NULL;

	for (u32 i = 0; i < m->n; i++) {
		struct torch_mark *mark = &m->marks[i];

		if (mark->is_step)
			step = mark;
		else if (step && mark->phase == PHASE_BACKWARD && mark->start >= step->start && mark->end <= step->end)
			step->start = mark->end;
	}
	qsort(m->marks, m->n, sizeof(*m->marks), by_start);
}

/*
 * Makes the marks disjoint. A collective is cut out of the phase that contains it; of other phases that overlap the
 * later one is cut. A step's end counts even if another phase contains it.
 */
static int separate(struct making *m)
{
	struct torch_mark *list = NULL;
	u32 n = 0;

	for (u32 i = 0; i < m->n; i++) {
		struct torch_mark mark = m->marks[i], *before = n ? &list[n - 1] : NULL, rest = { 0 };

		if (before && mark.start < before->end && mark.phase == PHASE_COLLECTIVE &&
		    before->phase != PHASE_COLLECTIVE && mark.end < before->end) {
			rest = *before;
			rest.start = mark.end;
			before->end = mark.start;
			before->is_step = false;
		} else if (before && mark.start < before->end) {
			mark.start = before->end;
		}
		if ((mark.start < mark.end || mark.is_step) && !array__push(list, n, mark))
			goto failed;
		if (rest.end && !array__push(list, n, rest))
			goto failed;
	}
	free(m->marks);
	m->marks = list;
	m->n = n;
	return 0;
failed:
	free(list);
	return -ENOMEM;
}

/*
 * Collects the phases of a thread in m->marks, so that no two overlap: its own, those of engine threads, and if it
 * evaluates no nodes itself also backward passes of threads that have other phases.
 */
static int collect(struct making *m, const struct torch_marks *all, u32 from, u32 to)
{
	bool has_backward = false, is_process = false, engine = false;

	for (u32 i = from; i < to; i++)
		has_backward |= all->list[i].phase == PHASE_BACKWARD;
	for (u32 i = 0; i < all->n; i++) {
		const struct torch_mark *mark = &all->list[i];
		bool is_added = i >= from && i < to;

		if (!i || !is_same_thread(mark, mark - 1)) {
			is_process = mark->pid == all->list[from].pid;
			engine = is_process && is_engine(all, i);
			if (engine && !array__push(m->loop->engines, m->loop->n_engines, mark->tid))
				return -ENOMEM;
		}
		is_added |= engine || (is_process && !has_backward && mark->phase == PHASE_BACKWARD);
		if (mark->marked || !is_added)
			continue;
		if (!array__push(m->marks, m->n, *mark))
			return -ENOMEM;
	}
	qsort(m->marks, m->n, sizeof(*m->marks), by_start);
	leave_out_closures(m);
	return separate(m);
}

static int add_steps(struct making *m, u32 boundary)
{
	struct torch_loop *l = m->loop;
	u64 before = 0;

	for (u32 i = 0; i < m->n; i++) {
		const struct torch_mark *mark = &m->marks[i];
		u64 at = l->by_optimizer ? mark->end : mark->start;
		struct torch_step step = { .start = before, .end = at, .number = l->n + 1 };

		if (mark->phase != (l->by_optimizer ? PHASE_OPTIMIZER : PHASE_DATA) ||
		    (l->by_optimizer && (!mark->is_step || mark->range != boundary)))
			continue;
		if (before && at > before && !array__push(l->steps, l->n, step))
			return -ENOMEM;
		before = at;
	}
	return 0;
}

/* Returns how the steps of a thread are marked. */
static enum torch_marked marked_of(const struct torch_marks *all, u32 from, u32 to)
{
	enum torch_marked marked = MARKED_NOT;

	for (u32 i = from; i < to; i++)
		marked = all->list[i].marked > marked ? all->list[i].marked : marked;
	return marked;
}

/*
 * Adds the steps that have this mark, except for those that overlap the step before. Sets *range to the number of their
 * name.
 */
static int add_marked(struct torch_loop *l, const struct torch_marks *all, u32 from, u32 to, enum torch_marked marked,
		      u32 *range)
{
	for (u32 i = from; i < to; i++) {
		const struct torch_mark *mark = &all->list[i];
		struct torch_step step = { .start = mark->start, .end = mark->end, .number = mark->number };

		if (mark->marked != marked || mark->end <= mark->start ||
		    (l->n && mark->start < l->steps[l->n - 1].end))
			continue;
		if (!array__push(l->steps, l->n, step))
			return -ENOMEM;
		*range = mark->range;
	}
	return 0;
}

/* Returns the phase of operators before marks[i], the next mark in the step; i == end: there is none. */
static enum torch_phase phase_before(const struct making *m, u32 i, u32 end, bool had_backward)
{
	/* gradients are set to zero before, in or after a forward pass, and any phase may have collectives */
	while (i < end && (m->marks[i].phase == PHASE_COLLECTIVE ||
			   (m->marks[i].phase == PHASE_OPTIMIZER && !m->marks[i].is_step)))
		i++;
	if (i < end && m->marks[i].phase == PHASE_DATA)
		return PHASE_OTHER;
	if (i < end && m->marks[i].phase == PHASE_BACKWARD)
		return PHASE_FORWARD;
	if (i < end && had_backward)
		return PHASE_OPTIMIZER;
	return had_backward ? PHASE_OTHER : PHASE_FORWARD;
}

static int add_gap(struct torch_gaps *gaps, struct torch_step *s, u64 from, u64 to, enum torch_phase phase,
		   bool is_in_pass)
{
	struct torch_gap gap = { .start = from, .end = to, .phase = phase, .is_in_pass = is_in_pass };

	if (from >= to || phase == PHASE_OTHER)
		return 0;
	s->n_gaps++;
	return array__push(gaps->list, gaps->n, gap) ? 0 : -ENOMEM;
}

/* Sums the phases of a step, whose marks begin at *first, and lists the gaps between them. */
static int fill_step(struct making *m, struct torch_step *s, u32 *first)
{
	bool had_backward = false;
	u64 at = s->start;
	u32 end;
	int err = 0;

	while (*first < m->n && m->marks[*first].end <= s->start)
		(*first)++;
	for (end = *first; end < m->n && m->marks[end].start < s->end; end++)
		;
	s->first_gap = m->gaps->n;
	for (u32 i = *first; !err && i < end; i++) {
		const struct torch_mark *mark = &m->marks[i];
		u64 from = mark->start > at ? mark->start : at, to = mark->end < s->end ? mark->end : s->end;

		/* a step of the optimizer may lie in another phase */
		to = to > from ? to : from;
		err = add_gap(m->gaps, s, at, from, phase_before(m, i, end, had_backward),
			      i > *first && mark->phase == PHASE_BACKWARD && mark[-1].phase == PHASE_BACKWARD);
		s->phase_ns[mark->phase] += to - from;
		s->collectives += mark->phase == PHASE_COLLECTIVE;
		had_backward |= mark->phase == PHASE_BACKWARD;
		at = to;
	}
	return err ? err : add_gap(m->gaps, s, at, s->end, phase_before(m, end, end, had_backward), false);
}

static int make_loop(struct torch_steps *s, const struct torch_marks *all, u32 from, u32 to, struct torch_gaps *gaps)
{
	struct torch_loop loop = { .pid = all->list[from].pid, .tid = all->list[from].tid };
	struct making m = { .loop = &loop, .gaps = gaps };
	u32 boundary, first = 0;
	enum torch_marked marked = marked_of(all, from, to);
	int err = find_boundary(all, from, to, &boundary, &loop.by_optimizer);

	if (err || (!boundary && !marked))
		return err;
	if (s->tried == LOOPS_MAX) {
		s->ignored++;
		return 0;
	}
	s->tried++;
	err = collect(&m, all, from, to);
	loop.is_marked = marked;
	loop.by_optimizer = loop.by_optimizer && !marked;
	if (!err)
		err = marked ? add_marked(&loop, all, from, to, marked, &boundary) : add_steps(&m, boundary);
	for (u32 i = 0; !err && i < loop.n; i++)
		err = fill_step(&m, &loop.steps[i], &first);
	if (boundary)
		snprintf(loop.boundary, sizeof(loop.boundary), "%s", texts__text(&all->texts, boundary));
	for (u32 i = from; i < to; i++)
		if (all->list[i].phase == PHASE_DATA && !all->list[i].marked) {
			snprintf(loop.loader, sizeof(loop.loader), "%s", texts__text(&all->texts, all->list[i].range));
			loop.batches++;
		}
	free(m.marks);
	if (err || !loop.n || !array__push(s->loops, s->n, loop)) {
		free(loop.steps);
		free(loop.engines);
		return err ? err : loop.n ? -ENOMEM : 0;
	}
	return 0;
}

static u64 length(const struct torch_step *s)
{
	return s->end - s->start;
}

/* Sets the longest step and the typical one. 0 or -ENOMEM. */
static int choose(struct torch_loop *l)
{
	u64 *list = calloc(l->n, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < l->n; i++) {
		list[i] = length(&l->steps[i]);
		l->total_ns += list[i];
		if (list[i] > length(&l->steps[l->slowest]))
			l->slowest = i;
	}
	qsort(list, l->n, sizeof(*list), compare__u64);
	l->median_ns = list[(l->n - 1) / 2];
	for (u32 i = 0; i < l->n; i++)
		if (length(&l->steps[i]) == l->median_ns)
			l->typical = i;
	free(list);
	return 0;
}

/* Adds the operators between phases, and the rest of each step. 0 or -ENOMEM. */
static int finish(struct torch_loop *l, const struct torch_gaps *gaps)
{
	u64 *list = calloc(l->n, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < l->n; i++) {
		struct torch_step *s = &l->steps[i];
		u64 known = 0;

		for (u32 k = s->first_gap; k < s->first_gap + s->n_gaps; k++) {
			const struct torch_gap *g = &gaps->list[k];

			if (g->is_in_pass && !g->first)
				s->phase_ns[PHASE_BACKWARD] += g->end - g->start;
			else if (g->last > g->first)
				s->phase_ns[g->phase] += g->last - g->first;
		}
		for (u32 p = 0; p < PHASE_OTHER; p++)
			known += s->phase_ns[p];
		s->phase_ns[PHASE_OTHER] = length(s) > known ? length(s) - known : 0;
		for (u32 p = 0; p < PHASES; p++)
			l->phase_total_ns[p] += s->phase_ns[p];
	}
	for (u32 p = 0; p < PHASES; p++) {
		for (u32 i = 0; i < l->n; i++)
			list[i] = l->steps[i].phase_ns[p];
		qsort(list, l->n, sizeof(*list), compare__u64);
		l->phase_median_ns[p] = list[(l->n - 1) / 2];
	}
	free(list);
	return 0;
}

COMPARE_BY(by_total, struct torch_loop, DESCENDING(total_ns))

static int make_loops(struct torch_steps *s, const struct torch_marks *marks, struct torch_gaps *gaps)
{
	u32 end;
	int err = 0;

	for (u32 i = 0; !err && i < marks->n; i = end) {
		for (end = i; end < marks->n && marks->list[end].pid == marks->list[i].pid &&
			      marks->list[end].tid == marks->list[i].tid;)
			end++;
		err = make_loop(s, marks, i, end, gaps);
	}
	for (u32 i = 0; !err && i < s->n; i++) {
		map__init(&s->loops[i].parts[0], sizeof(u32), sizeof(struct torch_part));
		map__init(&s->loops[i].parts[1], sizeof(u32), sizeof(struct torch_part));
		map__init(&s->loops[i].fallbacks, sizeof(u32), sizeof(struct torch_fallback));
		err = choose(&s->loops[i]);
	}
	if (s->n)
		qsort(s->loops, s->n, sizeof(*s->loops), by_total);
	return err;
}

int torch_steps__new(struct torch_steps **out, const struct query *q)
{
	struct torch_steps *s = calloc(1, sizeof(*s));
	struct torch_marks marks = { 0 };
	struct torch_gaps gaps = { 0 };
	int err;

	*out = s;
	if (!s)
		return -ENOMEM;
	err = torch__new(&s->torch, q);
	if (!err)
		err = torch_marks__read(&marks, q);
	if (!err)
		err = make_loops(s, &marks, &gaps);
	s->dropped = marks.dropped;
	if (!err && s->n)
		err = torch_forward__read(s, &gaps);
	for (u32 i = 0; !err && i < s->n; i++)
		err = finish(&s->loops[i], &gaps);
	torch_marks__free(&marks);
	free(gaps.list);
	return err;
}

void torch_steps__free(struct torch_steps *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->n; i++) {
		free(s->loops[i].steps);
		free(s->loops[i].engines);
		MAPS_FREE(&s->loops[i].parts[0], &s->loops[i].parts[1], &s->loops[i].fallbacks);
	}
	free(s->loops);
	torch__free(s->torch);
	free(s);
}

bool torch_loop__is_slow(const struct torch_loop *l, u32 step)
{
	return length(&l->steps[step]) >= l->median_ns + l->median_ns / 2;
}

enum torch_phase torch_loop__slow_phase(const struct torch_loop *l, u64 *more_ns)
{
	const struct torch_step *s = &l->steps[l->slowest];
	enum torch_phase found = PHASE_OTHER;

	*more_ns = 0;
	for (u32 p = 0; p < PHASES; p++) {
		if (s->phase_ns[p] < l->phase_median_ns[p] + *more_ns)
			continue;
		*more_ns = s->phase_ns[p] - l->phase_median_ns[p];
		found = p;
	}
	return found;
}

const struct torch_part *torch_loop__slow_part(const struct torch_loop *l, u64 *more_ns)
{
	const struct torch_part *found = NULL;

	*more_ns = 0;
	for (u32 i = 0; i < l->parts[0].n; i++) {
		const struct torch_part *p = map__value(&l->parts[0], i), *usual = map__find(&l->parts[1], &p->name);
		u64 before = usual ? usual->self_ns : 0;

		if (p->self_ns <= before + *more_ns)
			continue;
		*more_ns = p->self_ns - before;
		found = p;
	}
	return found;
}
