// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who waited for Python's GIL, and for whom. What is counted is timed waits:
 * take_gil waits a switch interval (5 ms) at a time, so one attempt to get the
 * GIL may be several of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/gil.h"
#include "util/text.h"

/* enum gil_wait_end of bpf/probes/gil/gil.h; by number, as traces outlive headers */
enum { WAIT_SIGNAL = 1, WAIT_TIMEOUT = 2 };

static int waits__add(struct gil_waits *w, struct gil_report *g, u64 ns, s64 result)
{
	if (!w)
		return -ENOMEM;
	w->by_signal += result == WAIT_SIGNAL;
	w->by_timeout += result == WAIT_TIMEOUT;
	return stats__add(&w->time, &g->pool, ns);
}

struct fields {
	struct common_fields common;
	const struct schema_field *gil, *result, *dropper, *holder;
};

static int on_wait(struct gil_report *g, const struct view *v, const struct fields *f)
{
	u64 end = (u64)view__s64(v, f->common.time), start = (u64)view__s64(v, f->common.start);
	struct gil_key gil = { (u64)view__s64(v, f->gil), (u32)view__s64(v, f->common.pid), 0 };
	struct gil_thread_key thread = { gil, (u32)view__s64(v, f->common.tid), 0 };
	struct gil_blame_key blame = { gil, thread.tid, (u32)view__s64(v, f->dropper), 0, 0 };
	s64 result = view__s64(v, f->result);
	struct gil_interpreter *interpreter = map__get(&g->interpreters, &gil);
	u32 threads = g->threads.n;
	int err;

	if (!interpreter)
		return -ENOMEM;
	/* who holds it when a wait times out is who was waited for */
	if (!blame.dropper)
		blame.holder = (u32)view__s64(v, f->holder);
	err = waits__add(&interpreter->waits, g, end - start, result);
	if (!err)
		err = waits__add(map__get(&g->threads, &thread), g, end - start, result);
	if (!err)
		err = waits__add(map__get(&g->blame, &blame), g, end - start, result);
	/* a key that was new is a thread that had not waited here before */
	interpreter->threads += g->threads.n - threads;
	if (!interpreter->first || start < interpreter->first)
		interpreter->first = start;
	interpreter->last = end > interpreter->last ? end : interpreter->last;
	interpreter->inside += report__inside(g->args, start, end);
	return err;
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct fields f = {
		.common = common_fields__of(v.event),
		.gil = schema_event__field(v.event, "gil"),
		.result = schema_event__field(v.event, "result"),
		.dropper = schema_event__field(v.event, "dropper"),
		.holder = schema_event__field(v.event, "holder"),
	};
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_wait(arg, &v, &f);
	return err;
}

int gil_report__read(struct gil_report *g, const struct report_args *args)
{
	*g = (struct gil_report){ .names = args->names, .args = args };
	map__init(&g->interpreters, sizeof(struct gil_key), sizeof(struct gil_interpreter));
	map__init(&g->threads, sizeof(struct gil_thread_key), sizeof(struct gil_waits));
	map__init(&g->blame, sizeof(struct gil_blame_key), sizeof(struct gil_waits));
	return report__read_kind(args, "gil_wait", on_rows, g);
}

void gil_report__free(struct gil_report *g)
{
	u32 i;

	for (i = 0; i < g->interpreters.n; i++)
		stats__free(&((struct gil_interpreter *)map__value(&g->interpreters, i))->waits.time, &g->pool);
	for (i = 0; i < g->threads.n; i++)
		stats__free(&((struct gil_waits *)map__value(&g->threads, i))->time, &g->pool);
	for (i = 0; i < g->blame.n; i++)
		stats__free(&((struct gil_waits *)map__value(&g->blame, i))->time, &g->pool);
	map__free(&g->interpreters);
	map__free(&g->threads);
	map__free(&g->blame);
}

#define WAIT_COLUMNS                                                                                       \
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT }, { "wait_ns", "Waited", VALUE_U64, SHOW_NS },          \
		{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS }, { "p99_ns", "p99", VALUE_U64, SHOW_NS }, \
		{ "max_ns", "Max", VALUE_U64, SHOW_NS }, { "signal", "Signalled", VALUE_U64, SHOW_COUNT }, \
	{                                                                                                  \
		"timeout", "Timed out", VALUE_U64, SHOW_COUNT                                              \
	}

static const struct column interpreter_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	WAIT_COLUMNS,
};

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },
	WAIT_COLUMNS,
};

static const struct column blame_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_NEVER },
	{ "waiter_tid", "Waiter", VALUE_U64, SHOW_PLAIN },
	{ "waiter", "Waiter's name", VALUE_TEXT, SHOW_PLAIN },
	{ "dropper_tid", "Let go by", VALUE_U64, SHOW_PLAIN },
	{ "dropper", "Its name", VALUE_TEXT, SHOW_PLAIN },
	{ "holder_tid", "Or held on by", VALUE_U64, SHOW_PLAIN },
	{ "holder", "Its name", VALUE_TEXT, SHOW_PLAIN },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
};

#define WAIT_VALUES(w)                                                                                 \
	V_U64((w)->time.count), V_U64((w)->time.total), V_DBL(stats__median(&(w)->time)),              \
		V_U64(stats__percentile(&(w)->time, 99)), V_U64((w)->time.max), V_U64((w)->by_signal), \
		V_U64((w)->by_timeout)

static struct value name_of(const struct gil_report *g, const struct gil_blame_key *k, u32 tid)
{
	return V_TEXT(tid ? names__comm(g->names, k->gil.pid, tid) : NULL);
}

static void fill(struct gil_report *g, struct report_output *out)
{
	struct table *interpreters, *threads, *blame;
	const struct gil_thread_key *k;
	const struct gil_blame_key *b;
	struct gil_interpreter *one;
	const struct gil_key *gil;
	struct gil_waits *w;
	u32 i;

	interpreters =
		REPORT_TABLE(out, "interpreters",
			     "Interpreters (timed waits of a switch interval at most: one attempt may be several)",
			     interpreter_columns);
	threads = REPORT_TABLE(out, "threads", "Threads that waited for the GIL (timed waits)", thread_columns);
	blame = REPORT_TABLE(
		out, "blame",
		"Who was waited for: let the GIL go, which ended the wait, or still held it at a time-out (timed waits)",
		blame_columns);
	threads->limit = blame->limit = 30;
	for (i = 0; i < g->interpreters.n; i++) {
		gil = map__key(&g->interpreters, i);
		one = map__value(&g->interpreters, i);
		table__add(interpreters, V_U64(gil->pid), V_TEXT(names__comm(g->names, gil->pid, 0)), V_U64(gil->gil),
			   V_U64(one->threads), WAIT_VALUES(&one->waits));
	}
	for (i = 0; i < g->threads.n; i++) {
		k = map__key(&g->threads, i);
		w = map__value(&g->threads, i);
		table__add(threads, V_U64(k->gil.pid), V_U64(k->tid), V_TEXT(names__comm(g->names, k->gil.pid, k->tid)),
			   V_U64(k->gil.gil), WAIT_VALUES(w));
	}
	for (i = 0; i < g->blame.n; i++) {
		b = map__key(&g->blame, i);
		w = map__value(&g->blame, i);
		table__add(blame, V_U64(b->gil.pid), V_U64(b->gil.gil), V_U64(b->tid), name_of(g, b, b->tid),
			   b->dropper ? V_U64(b->dropper) : V_NONE,
			   b->dropper || b->holder ? name_of(g, b, b->dropper) : V_TEXT("holder not seen"),
			   b->holder ? V_U64(b->holder) : V_NONE, name_of(g, b, b->holder), V_U64(w->time.count),
			   V_U64(w->time.total));
	}
	table__sort(interpreters, "wait_ns");
	table__sort(threads, "wait_ns");
	table__sort(blame, "wait_ns");
}

/* The interpreter that comes after `last` (-1: before all) by time waited; -1: no more. */
static int next_worst(const struct gil_report *g, int last)
{
	const struct gil_interpreter *one;
	u64 waited, limit = 0, best_waited = 0;
	int i, best = -1;

	if (last >= 0)
		limit = ((struct gil_interpreter *)map__value(&g->interpreters, (u32)last))->waits.time.total;
	for (i = 0; i < (int)g->interpreters.n; i++) {
		one = map__value(&g->interpreters, (u32)i);
		waited = one->waits.time.total;
		if (last >= 0 && (waited > limit || (waited == limit && i <= last)))
			continue;
		if (best < 0 || waited > best_waited) {
			best = i;
			best_waited = waited;
		}
	}
	return best;
}

void gil_report__find(const struct gil_report *g, struct report_output *out, u64 duration, u32 max)
{
	const struct gil_interpreter *one;
	char who[64], waited[TEXT_NUMBER];
	int i = next_worst(g, -1);

	for (; max && i >= 0 && duration; max--, i = next_worst(g, i)) {
		one = map__value(&g->interpreters, (u32)i);
		names__label(g->names, who, sizeof(who),
			     ((const struct gil_key *)map__key(&g->interpreters, (u32)i))->pid, 0);
		text__ns(waited, sizeof(waited), one->inside);
		report_output__finding(
			out, "%s: %u thread%s waited %.1f%% of the time for the GIL (%s in %llu timed waits).", who,
			one->threads, one->threads == 1 ? "" : "s",
			100.0 * (double)one->inside / ((double)duration * one->threads), waited, one->waits.time.count);
	}
}

static int run(const struct report_args *args, struct report_output *out)
{
	struct gil_report g;
	int err = gil_report__read(&g, args);

	fill(&g, out);
	if (!g.interpreters.n)
		report__nothing(args, out, "No thread waited for a GIL", "gil");
	gil_report__find(&g, out, report__duration(args), 3);
	if (g.pool.approximate)
		report_output__note(out, "Medians and p99 of groups beyond %u waits are within 0.4%%.", STATS_EXACT);
	gil_report__free(&g);
	return err;
}

REPORT(gil) = {
	.name = "gil",
	.doc = "waits for Python's GIL: by interpreter, by thread, and who let it go",
	.run = run,
};
