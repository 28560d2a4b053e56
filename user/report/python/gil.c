// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report gil: which threads waited for Python's GIL, how long, and which thread held it. take_gil waits in steps of a
 * switch interval (5 ms), so one attempt to get the GIL may be several timed waits. This file counts them by
 * interpreter and thread; gil_blame.c determines which code caused them.
 */
#include "report/python/gil.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "output/text.h"
#include "probes/gil/gil.h"
#include "util/saturate.h"

static u64 with_more(u64 recorded, double more)
{
	return recorded + saturate__round(more);
}

u64 gil_waits__count(const struct gil_waits *w)
{
	return with_more(w->time.count, w->more_waits);
}

u64 gil_waits__ns(const struct gil_waits *w)
{
	return with_more(w->time.total, w->more_ns);
}

static u64 gil_waits__attempts(const struct gil_waits *w)
{
	return with_more(w->attempts, w->more_attempts);
}

static int waits__add(struct gil_waits *w, struct gil_report *g, const struct gil_timed_wait *t)
{
	u64 ns = t->end - t->start - stops__ns(&g->stops, t->gil.pid, t->tid, t->start, t->end);

	w->by_signal += t->result == GIL_WAIT_SIGNAL;
	w->by_timeout += t->result == GIL_WAIT_TIMEOUT;
	w->attempts += t->first;
	w->more_waits += t->weight - 1;
	w->more_ns += (t->weight - 1) * (double)ns;
	w->more_attempts += t->first ? t->weight - 1 : 0;
	return stats__add(&w->time, &g->pool, ns);
}

/* Returns the ns of [from, to) in the selected time in which the thread was not stopped. */
static u64 inside(const struct gil_report *g, u32 pid, u32 tid, u64 from, u64 to)
{
	u64 ns = query__inside(g->args, from, to), stopped;

	from = from > g->args->from ? from : g->args->from;
	to = !g->args->to || to < g->args->to ? to : g->args->to;
	stopped = stops__ns(&g->stops, pid, tid, from, to);
	return ns > stopped ? ns - stopped : 0;
}

/* Is the thread selected, and a part of the interval within the selected time? */
static bool is_selected(const struct gil_report *g, u32 tid, u64 from, u64 to)
{
	const struct query *a = g->args;

	if (!trace_ids__have(&a->tids, tid))
		return false;
	return (to > a->from || (to == from && from >= a->from)) && (!a->to || from < a->to);
}

static int on_wait(const struct gil_timed_wait *w, void *arg)
{
	struct gil_report *g = arg;
	struct gil_thread_key key = { w->gil, w->tid, 0 };
	struct gil_interpreter *one;
	struct gil_thread *thread;
	u32 threads = g->threads.n;
	int err;

	if (!is_selected(g, w->tid, w->start, w->end))
		return 0;
	one = map__get(&g->interpreters, &w->gil);
	thread = map__get(&g->threads, &key);
	if (!one || !thread)
		return -ENOMEM;
	err = waits__add(&one->waits, g, w);
	if (!err)
		err = waits__add(&thread->waits, g, w);
	/* A new key means that this thread is another one that waits for this GIL. */
	one->threads += g->threads.n - threads;
	one->deepest = w->waiters > one->deepest ? w->waiters : one->deepest;
	one->inside += (double)inside(g, w->gil.pid, w->tid, w->start, w->end) * w->weight;
	return err;
}

static int on_segment(const struct gil_segment *p, void *arg)
{
	struct gil_report *g = arg;
	u64 ns = is_selected(g, p->waiter, p->from, p->to) ? inside(g, p->gil.pid, p->waiter, p->from, p->to) : 0;

	return ns ? gil_blame__add(g, p, (double)ns * p->weight) : 0;
}

static int on_held(const struct gil_held *h, void *arg)
{
	struct gil_report *g = arg;
	u64 ns = is_selected(g, h->tid, h->start, h->end) ? inside(g, h->gil.pid, h->tid, h->start, h->end) : 0;

	return ns ? gil_blame__held(g, h, ns) : 0;
}

static int on_switched(const struct gil_switched *s, void *arg)
{
	struct gil_report *g = arg;
	struct gil_thread_key key = { s->gil, s->tid, 0 };
	struct gil_thread *thread;

	if (!is_selected(g, s->tid, s->start, s->end))
		return 0;
	thread = map__get(&g->threads, &key);
	if (!thread)
		return -ENOMEM;
	thread->switches++;
	thread->switch_ns += (double)inside(g, s->gil.pid, s->tid, s->start, s->end) * s->weight;
	return 0;
}

static int on_contended(const struct gil_key *gil, double ns, void *arg)
{
	struct gil_report *g = arg;
	struct gil_interpreter *one = map__find(&g->interpreters, gil);

	if (one)
		one->busy = ns;
	return 0;
}

static const struct gil_listener listener = {
	.on_wait = on_wait,
	.on_segment = on_segment,
	.on_hold = on_held,
	.on_switch = on_switched,
	.on_contended = on_contended,
};

int gil_report__read(struct gil_report *g, const struct query *args)
{
	int err;

	*g = (struct gil_report){ .names = args->names, .args = args };
	map__init(&g->interpreters, sizeof(struct gil_key), sizeof(struct gil_interpreter));
	map__init(&g->threads, sizeof(struct gil_thread_key), sizeof(struct gil_thread));
	err = gil_blame__init(&g->blame, args);
	if (!err)
		err = stops__read(&g->stops, args);
	/* The holder is known from events of other threads, so all threads are read. */
	return err ? err : gil_model__read(args->trace, args->from, args->to, &args->pids, &listener, g, &g->paused);
}

void gil_report__free(struct gil_report *g)
{
	u32 i;

	for (i = 0; i < g->interpreters.n; i++)
		stats__free(&((struct gil_interpreter *)map__value(&g->interpreters, i))->waits.time, &g->pool);
	for (i = 0; i < g->threads.n; i++)
		stats__free(&((struct gil_thread *)map__value(&g->threads, i))->waits.time, &g->pool);
	MAPS_FREE(&g->interpreters, &g->threads);
	stops__free(&g->stops);
	gil_blame__free(&g->blame);
}

#define WAIT_COLUMNS                                                                                       \
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT }, { "wait_ns", "Waited", VALUE_U64, SHOW_NS },          \
		{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS }, { "p99_ns", "p99", VALUE_U64, SHOW_NS }, \
		{ "max_ns", "Max", VALUE_U64, SHOW_NS }, { "signal", "Signalled", VALUE_U64, SHOW_COUNT }, \
		{ "timed_out", "Timed out", VALUE_U64, SHOW_COUNT },                                       \
	{                                                                                                  \
		"attempts", "Attempts", VALUE_U64, SHOW_COUNT                                              \
	}

static const struct column interpreter_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	WAIT_COLUMNS,
	{ "busy_percent", "With waiters (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "depth", "Waiters (avg)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "depth_max", "Waiters (max)", VALUE_U64, SHOW_COUNT },
};

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	WAIT_COLUMNS,
	{ "switches", "Forced switches", VALUE_U64, SHOW_COUNT },
	{ "switch_ns", "Waited for forced switches", VALUE_U64, SHOW_NS },
};

#define WAIT_VALUES(w)                                                                                 \
	V_U64(gil_waits__count(w)), V_U64(gil_waits__ns(w)), V_DBL(stats__median(&(w)->time)),         \
		V_U64(stats__percentile(&(w)->time, 99)), V_U64((w)->time.max), V_U64((w)->by_signal), \
		V_U64((w)->by_timeout), V_U64(gil_waits__attempts(w))

struct value gil_report__interpreter(const struct gil_report *g, const struct gil_key *gil)
{
	u64 interpreter;

	return names__interpreter(g->names, gil->pid, gil->gil, &interpreter) ? V_U64(interpreter) : V_NONE;
}

char *gil_report__label(const struct gil_report *g, const struct gil_key *gil, char buf[GIL_LABEL])
{
	struct value number = gil_report__interpreter(g, gil);
	size_t len = strlen(names__label(g->names, buf, GIL_LABEL, gil->pid, gil->pid));

	if (number.type != VALUE_NONE)
		snprintf(buf + len, GIL_LABEL - len, ", interpreter %llu", number.u);
	return buf;
}

static void fill_interpreters(struct gil_report *g, struct table *t)
{
	u64 duration = query__duration(g->args);
	u32 i;

	for (i = 0; i < g->interpreters.n; i++) {
		const struct gil_key *gil = map__key(&g->interpreters, i);
		struct gil_interpreter *one = map__value(&g->interpreters, i);

		table__add(t, V_U64(gil->pid), V_TEXT(NAMES_TITLE(g->names, gil->pid, 0)), V_U64(gil->gil),
			   gil_report__interpreter(g, gil), V_U64(one->threads), WAIT_VALUES(&one->waits),
			   duration ? V_DBL(100 * one->busy / (double)duration) : V_NONE,
			   one->busy > 0 ? V_DBL(one->inside / one->busy) : V_NONE,
			   one->deepest ? V_U64(one->deepest) : V_NONE);
	}
	table__sort(t, "wait_ns");
}

static void fill_threads(struct gil_report *g, struct table *t)
{
	u32 i;

	for (i = 0; i < g->threads.n; i++) {
		const struct gil_thread_key *k = map__key(&g->threads, i);
		struct gil_thread *w = map__value(&g->threads, i);

		table__add(t, V_U64(k->gil.pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(g->names, k->gil.pid, k->tid)),
			   V_U64(k->gil.gil), gil_report__interpreter(g, &k->gil), WAIT_VALUES(&w->waits),
			   w->switches ? V_U64(w->switches) : V_NONE,
			   w->switches ? V_U64(saturate__u64(w->switch_ns)) : V_NONE);
	}
	table__sort(t, "wait_ns");
}

/* Returns the interpreter after `last` (-1: the first) in order of time waited, -1 at the end. */
static int next_by_wait(const struct gil_report *g, int last)
{
	u64 waited, limit = 0, best_waited = 0;
	int i, best = -1;

	if (last >= 0)
		limit = gil_waits__ns(&((struct gil_interpreter *)map__value(&g->interpreters, (u32)last))->waits);
	for (i = 0; i < (int)g->interpreters.n; i++) {
		waited = gil_waits__ns(&((struct gil_interpreter *)map__value(&g->interpreters, (u32)i))->waits);
		if (last >= 0 && (waited > limit || (waited == limit && i <= last)))
			continue;
		if (best < 0 || waited > best_waited) {
			best = i;
			best_waited = waited;
		}
	}
	return best;
}

bool gil_report__matters(const struct gil_report *g, u64 duration)
{
	for (u32 i = 0; i < g->interpreters.n; i++)
		if (((const struct gil_interpreter *)map__value(&g->interpreters, i))->busy > 0.1 * (double)duration)
			return true;
	return false;
}

void gil_report__add_findings(const struct gil_report *g, struct report_output *out, u64 duration, u32 max)
{
	const struct gil_interpreter *one;
	char who[GIL_LABEL], waited[TEXT_NUMBER];
	int i = next_by_wait(g, -1);
	const struct gil_key *gil;

	for (; max && i >= 0 && duration; max--, i = next_by_wait(g, i)) {
		one = map__value(&g->interpreters, (u32)i);
		gil = map__key(&g->interpreters, (u32)i);
		text__ns(waited, sizeof(waited), saturate__u64(one->inside));
		report_output__finding(
			out,
			"%s: for %.1f%% of the time at least one thread waited for the GIL (%u thread%s, %s in %llu timed waits).",
			gil_report__label(g, gil, who), 100.0 * one->busy / (double)duration, one->threads,
			text__s(one->threads), waited, gil_waits__count(&one->waits));
		REPORT_FIGURES(out, FIGURE("pid", V_U64(gil->pid)),
			       FIGURE("interpreter", gil_report__interpreter(g, gil)),
			       FIGURE("busy_percent", V_DBL(100.0 * one->busy / (double)duration)),
			       FIGURE("threads", V_U64(one->threads)),
			       FIGURE("wait_ns", V_U64(saturate__u64(one->inside))),
			       FIGURE("waits", V_U64(gil_waits__count(&one->waits))));
	}
	if (g->paused && g->paused >= duration)
		report_output__note(
			out, "Waits for the GIL were not measured in this time, to limit what this costs the program.");
	else if (g->paused)
		report_output__note(
			out,
			"Waits for the GIL were measured only in %.3g%% of the time, to limit what this costs the program. Counts and times are extrapolated to all of it. Medians, p99, maxima, signalled and timed out are of what was measured.",
			100.0 * (double)(duration - g->paused) / (double)duration);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *interpreters, *threads;
	struct gil_report g;
	int err = gil_report__read(&g, args);

	interpreters = REPORT_TABLE(out, "interpreters",
				    "GIL waits by interpreter (an attempt to take the GIL is one or more timed waits)",
				    interpreter_columns);
	interpreters->details = "gil signal timed_out depth_max median_ns";
	gil_blame__tables(&g, out);
	threads = REPORT_TABLE(out, "threads", "GIL waits by thread", thread_columns);
	threads->limit = 30;
	threads->details = "gil switches switch_ns signal timed_out median_ns";
	fill_interpreters(&g, interpreters);
	fill_threads(&g, threads);
	if (!g.interpreters.n)
		report__nothing(args, out, "No thread waited for a GIL", "gil");
	gil_blame__add_findings(&g, out);
	gil_report__add_findings(&g, out, query__duration(args), 3);
	if (g.pool.approximate)
		report_output__note(out, "Medians and p99 of groups beyond %u waits are within 0.4%%.", STATS_EXACT);
	gil_report__free(&g);
	return err;
}

REPORT(gil) = {
	.name = "gil",
	.doc = "waits for Python's GIL: by interpreter, by thread, and which code made which code wait",
	.kinds = "gil_wait,gil_hold",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_GIL,
};
