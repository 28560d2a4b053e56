// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_gaps.h"

#include <errno.h>
#include <stdlib.h>

#include "model/explainer.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

/* The average number of events in a window. The activity of all threads in a window is in memory: this bounds it. */
u32 gpu_gaps__window = 4u << 20;

/* gpu_sync's `kind` is CUPTI's CUpti_ActivitySynchronizationType. */
#define SYNC_STREAM_WAIT_EVENT 2

/* A cudaStreamWaitEvent call */
struct event_wait {
	u32 pid, context, stream;
	u64 time;
};

struct explaining {
	struct gpu_gaps *gaps;
	struct explainer *explainer;
	struct event_wait *waits; /* by stream and time */
	u32 n_waits;
	struct gap_part *parts; /* of the gap that is being explained */
	u32 n_parts;
};

static int on_syncs(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), kind, context, stream);
	struct explaining *e = arg;

	ROWS_EACH(v, rows) {
		if (view__s64(&v, kind) != SYNC_STREAM_WAIT_EVENT)
			continue;
		if (!array__push(e->waits, e->n_waits,
				 (struct event_wait){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, context),
						      (u32)view__s64(&v, stream), (u64)view__s64(&v, f.start) }))
			return -ENOMEM;
	}
	return 0;
}

COMPARE_BY(by_stream, struct event_wait, ASCENDING(pid), ASCENDING(context), ASCENDING(stream), ASCENDING(time))

/* Returns whether the program made the stream wait for an event between the previous launch and this one. */
static bool waits_for_event(const struct explaining *e, const struct gpu_gap *g)
{
	struct event_wait key = { gpu_busy__key(e->gaps->busy, g->device)->pid, g->context, g->stream,
				  g->launch_before };
	u32 at = SEARCH(e->n_waits, i, by_stream(&e->waits[i], &key) < 0);

	key.time = g->launch_start;
	return at < e->n_waits && e->waits[at].pid == key.pid && e->waits[at].context == key.context &&
	       e->waits[at].stream == key.stream && e->waits[at].time <= key.time;
}

static int on_part(enum gap_cause cause, u32 object, u64 ns, void *arg)
{
	struct explaining *e = arg;

	for (u32 i = 0; i < e->n_parts; i++)
		if (e->parts[i].cause == cause && e->parts[i].object == object) {
			e->parts[i].ns += ns;
			return 0;
		}
	if (!array__push(e->parts, e->n_parts, (struct gap_part){ cause, object, ns }))
		return -ENOMEM;
	return 0;
}

/* Explains [from, to), which is before the launch returned, by the activity of the launching thread. */
static int explain_host(struct explaining *e, const struct gpu_gap *g, u64 from, u64 to)
{
	struct explainer_hint hint = { .from = g->from, .to = g->to, .stack = g->stack };
	u32 pid = gpu_busy__key(e->gaps->busy, g->device)->pid;
	u64 called = g->launch_start < from ? from : g->launch_start > to ? to : g->launch_start;
	int err = explainer__explain(e->explainer, pid, g->tid, from, called, &hint, on_part, e);

	hint.call = g->call;
	return err ? err : explainer__explain(e->explainer, pid, g->tid, called, to, &hint, on_part, e);
}

/* Explains the part [from, to) of a gap, which lies in the window. */
static int explain(struct explaining *e, const struct gpu_gap *g, u64 from, u64 to)
{
	u64 launched = g->launch_end < from ? from : g->launch_end > to ? to : g->launch_end;
	int err;

	e->n_parts = 0;
	if (!g->tid || !g->launch_end)
		return on_part(GAP_UNKNOWN, 0, to - from, e);
	err = explain_host(e, g, from, launched);
	if (!err && launched < to)
		err = on_part(waits_for_event(e, g) ? GAP_EVENT : GAP_QUEUE, 0, to - launched, e);
	return err;
}

static int add_to_sums(struct explaining *e, const struct gpu_gap *g)
{
	for (u32 i = 0; i < e->n_parts; i++) {
		struct gap_sum_key key = { g->device, e->parts[i].cause, e->parts[i].object };
		struct gap_sum *s = map__get(&e->gaps->sums, &key);

		if (!s)
			return -ENOMEM;
		s->ns += e->parts[i].ns;
		s->gaps += s->last != g;
		s->last = g;
	}
	return 0;
}

static int add_to_detail(struct explaining *e, struct gap_detail *t)
{
	for (u32 i = 0; i < e->n_parts; i++) {
		u32 k = 0;

		while (k < t->n && (t->parts[k].cause != e->parts[i].cause || t->parts[k].object != e->parts[i].object))
			k++;
		if (k < t->n) {
			t->parts[k].ns += e->parts[i].ns;
			continue;
		}
		if (!array__push(t->parts, t->n, e->parts[i]))
			return -ENOMEM;
	}
	return 0;
}

static int add_to_tail(struct explaining *e, const struct gpu_gap *g)
{
	struct gap_detail *t = map__get(&e->gaps->tails, &g->device);

	if (!t)
		return -ENOMEM;
	t->gap = g;
	return add_to_detail(e, t);
}

/*
 * Explains the parts of gaps that lie in [from, to). *first: the first gap that does not end before this window; gaps
 * are in order of their starts, and those of several devices overlap, so gaps after it may have ended.
 */
static int explain_window(struct explaining *e, u64 from, u64 to, u32 *first)
{
	const struct gpu_busy *b = e->gaps->busy;
	int err = explainer__load(e->explainer, from, to);

	while (*first < b->n_gaps && b->gaps[*first].to <= from)
		++*first;
	for (u32 i = *first; !err && i < b->n_gaps && b->gaps[i].from < to; i++) {
		const struct gpu_gap *g = &b->gaps[i];

		if (g->to <= from)
			continue;
		err = explain(e, g, g->from > from ? g->from : from, g->to < to ? g->to : to);
		if (!err && !g->tail)
			err = add_to_sums(e, g);
		if (!err && g->tail)
			err = add_to_tail(e, g);
		if (!err && g->rank)
			err = add_to_detail(e, &e->gaps->details[g->rank - 1]);
	}
	return err;
}

static int by_length(const void *a, const void *b)
{
	const struct gpu_gap *x = ((const struct gap_detail *)a)->gap, *y = ((const struct gap_detail *)b)->gap;
	u64 m = x->tail ? 0 : x->to - x->from, n = y->tail ? 0 : y->to - y->from;

	return m != n ? (m > n ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

/* Makes a gap_detail for each of the longest gaps, at most max: reports list their parts one by one. */
static int choose_details(struct gpu_gaps *g, u32 max)
{
	struct gpu_busy *b = g->busy;
	struct gap_detail *all = calloc((size_t)b->n_gaps + 1, sizeof(*all)), *fewer;
	u32 tails = 0;

	if (!all)
		return -ENOMEM;
	for (u32 i = 0; i < b->n_gaps; i++) {
		all[i].gap = &b->gaps[i];
		tails += b->gaps[i].tail;
	}
	qsort(all, b->n_gaps, sizeof(*all), by_length);
	g->n_details = b->n_gaps - tails < max ? b->n_gaps - tails : max;
	for (u32 i = 0; i < g->n_details; i++)
		b->gaps[all[i].gap - b->gaps].rank = i + 1;
	fewer = realloc(all, ((size_t)g->n_details + 1) * sizeof(*all));
	g->details = fewer ? fewer : all;
	return 0;
}

static int explain_all(struct explaining *e)
{
	struct gpu_busy *b = e->gaps->busy;
	const struct trace_summary *t = trace__summary(b->args->trace);
	u64 first = b->gaps[0].from, last = 0, step;
	u32 at_gap = 0;
	int err = 0;

	for (u32 i = 0; !err && i < b->n_gaps; i++) {
		last = b->gaps[i].to > last ? b->gaps[i].to : last;
		if (b->gaps[i].tid)
			err = explainer__add_thread(e->explainer, gpu_busy__key(b, b->gaps[i].device)->pid,
						    b->gaps[i].tid);
	}
	step = (last - first) / (t->events / gpu_gaps__window + 1) + 1;
	for (u64 at = first, end; !err && at < last; at = end) {
		end = trace_window__step_end(at, step, last);
		err = explain_window(e, at, end, &at_gap);
	}
	return err;
}

static int by_ns(const void *a, const void *b)
{
	const struct gap_part *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : (int)x->cause - (int)y->cause;
}

static void sort_parts(struct gap_detail *t)
{
	if (t->n)
		qsort(t->parts, t->n, sizeof(*t->parts), by_ns);
}

static int add_short(struct gpu_gaps *g)
{
	for (u32 i = 0; i < g->busy->devices.n; i++) {
		const struct gpu_device_sum *d = gpu_busy__sum(g->busy, i);
		struct gap_sum_key key = { i, GAP_SHORT, 0 };
		struct gap_sum *s = d->short_gaps ? map__get(&g->sums, &key) : NULL;

		if (d->short_gaps && !s)
			return -ENOMEM;
		if (s)
			*s = (struct gap_sum){ .ns = d->short_ns, .gaps = d->short_gaps };
	}
	return 0;
}

int gpu_gaps__read(struct gpu_gaps *g, struct gpu_busy *b, u32 max)
{
	struct explaining e = { .gaps = g };
	struct query all = *b->args;
	int err;

	*g = (struct gpu_gaps){ .busy = b };
	texts__init(&g->texts);
	map__init(&g->tails, sizeof(u32), sizeof(struct gap_detail));
	map__init(&g->sums, sizeof(struct gap_sum_key), sizeof(struct gap_sum));
	all.tids.n = 0;
	err = choose_details(g, max);
	if (!err && b->n_gaps) {
		err = query__read_kind(&all, "gpu_sync", on_syncs, &e);
		if (e.n_waits)
			qsort(e.waits, e.n_waits, sizeof(*e.waits), by_stream);
		if (!err)
			err = explainer__new(&e.explainer, b->args, g);
		if (!err)
			err = explain_all(&e);
		explainer__free(e.explainer);
	}
	if (!err)
		err = add_short(g);
	for (u32 i = 0; i < g->n_details; i++)
		sort_parts(&g->details[i]);
	for (u32 i = 0; i < g->tails.n; i++)
		sort_parts(map__value(&g->tails, i));
	free(e.waits);
	free(e.parts);
	return err;
}

void gpu_gaps__free(struct gpu_gaps *g)
{
	for (u32 i = 0; i < g->n_details; i++)
		free(g->details[i].parts);
	for (u32 i = 0; i < g->tails.n; i++)
		free(((struct gap_detail *)map__value(&g->tails, i))->parts);
	map__free(&g->tails);
	free(g->details);
	MAPS_FREE(&g->texts, &g->sums);
	g->details = NULL;
	g->n_details = 0;
}
