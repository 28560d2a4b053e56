// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report offcpu: why threads did not run. A thread's time is running, runnable or waiting; waits are summed by the call
 * that the thread was in. A thread's parts sum to the time for which it has scheduler events.
 */
#include <errno.h>

#include "findings/findings.h"
#include "report/causes.h"

struct thread_time {
	u64 run_ns, runnable_ns, waited_ns;
	u32 top; /* the part it waited longest for, 0: none */
	u64 top_ns;
};

struct part_key {
	struct thread_key thread;
	u32 reason;
};

struct part {
	u64 ns, times;
};

struct waker_key {
	struct part_key part;
	struct thread_key waker;
};

struct offcpu {
	const struct activity *activity;
	struct causes *causes;
	struct map threads; /* struct thread_key -> struct thread_time */
	struct thread_key last; /* intervals arrive thread by thread: key of the current sums */
	struct thread_time *time;
	struct map parts; /* struct part_key -> struct part */
	struct map wakers; /* struct waker_key -> u64 ns waited that it ended */
};

static int add_wait(struct offcpu *o, const struct activity_interval *i)
{
	struct part_key key = { i->thread, i->reason };
	struct waker_key waker = { key, i->waker };
	struct part *p = map__get(&o->parts, &key);
	u64 *n;

	if (!p)
		return -ENOMEM;
	p->ns += i->to - i->from;
	p->times += i->is_new_reason;
	if (!i->waker.tid)
		return 0;
	n = map__get(&o->wakers, &waker);
	if (!n)
		return -ENOMEM;
	*n += i->to - i->from;
	return 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct offcpu *o = arg;
	u64 ns = i->to - i->from;
	struct thread_time *t = o->time;

	if (i->state == ACTIVITY_UNKNOWN)
		return 0;
	if (!t || i->thread.tid != o->last.tid || i->thread.pid != o->last.pid)
		t = o->time = map__get(&o->threads, &i->thread);
	if (!t || causes__add(o->causes, i))
		return -ENOMEM;
	o->last = i->thread;
	if (i->state == ACTIVITY_RUNNING) {
		t->run_ns += ns;
		return 0;
	}
	if (i->state == ACTIVITY_RUNNABLE) {
		t->runnable_ns += ns;
		return 0;
	}
	t->waited_ns += ns;
	return add_wait(o, i);
}

static void find_tops(struct offcpu *o)
{
	MAP_EACH_ENTRY(const struct part *p, const struct part_key *k, &o->parts) {
		struct thread_time *t = map__find(&o->threads, &k->thread);

		if (t && p->ns > t->top_ns) {
			t->top_ns = p->ns;
			t->top = k->reason;
		}
	}
}

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NS },	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },	{ "top_percent", "Main wait (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "top", "Main wait", VALUE_TEXT, SHOW_PLAIN },
};

static void fill_threads(struct offcpu *o, const struct query *args, struct table *table)
{
	MAP_EACH_ENTRY(const struct thread_time *t, const struct thread_key *k, &o->threads) {
		u64 wall = t->run_ns + t->runnable_ns + t->waited_ns;

		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(args->names, k->pid, k->tid)),
			   V_U64(wall), V_U64(t->run_ns), V_U64(t->runnable_ns), V_U64(t->waited_ns),
			   t->top ? V_DBL(table__percent(t->top_ns, wall)) : V_NONE,
			   V_TEXT(t->top ? activity__name(o->activity, t->top) : NULL));
	}
	table__sort(table, "wait_ns");
}

static const struct column part_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "reason", "Waited for, or in", VALUE_TEXT, SHOW_PLAIN },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "percent", "of its time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "waits", "Times", VALUE_U64, SHOW_COUNT },
	{ "waker_pid", "Waker's PID", VALUE_U64, SHOW_NEVER },
	{ "waker_tid", "Waker's TID", VALUE_U64, SHOW_NEVER },
	{ "waker", "Mostly ended by", VALUE_TEXT, SHOW_PLAIN },
	{ "waker_ns", "Time it ended", VALUE_U64, SHOW_NS },
};

/* The thread that ended most of a part's time; in a map apart, because a part has many wakers. */
struct best_waker {
	struct thread_key waker;
	u64 ns;
};

static int best_wakers(const struct offcpu *o, struct map *best)
{
	map__init(best, sizeof(struct part_key), sizeof(struct best_waker));
	MAP_EACH_ENTRY(const u64 *ns, const struct waker_key *k, &o->wakers) {
		struct best_waker *b = map__get(best, &k->part);

		if (!b)
			return -ENOMEM;
		if (*ns > b->ns)
			*b = (struct best_waker){ k->waker, *ns };
	}
	return 0;
}

static int fill_parts(struct offcpu *o, const struct query *args, struct table *table)
{
	struct map best;
	int err = best_wakers(o, &best);

	for (u32 i = 0; !err && i < o->parts.n; i++) {
		const struct part_key *k = map__key(&o->parts, i);
		const struct part *p = map__value(&o->parts, i);
		const struct thread_time *t = map__find(&o->threads, &k->thread);
		const struct best_waker *b = map__find(&best, k);
		char waker[64];

		/* No waker is named if each ended only a small part. */
		if (b && b->ns < p->ns / 2)
			b = NULL;
		if (b)
			names__label(args->names, waker, sizeof(waker), b->waker.pid, b->waker.tid);
		table__add(table, V_U64(k->thread.pid), V_U64(k->thread.tid),
			   V_TEXT(NAMES_TITLE(args->names, k->thread.pid, k->thread.tid)),
			   V_TEXT(activity__name(o->activity, k->reason)), V_U64(p->ns),
			   V_DBL(table__percent(p->ns, t->run_ns + t->runnable_ns + t->waited_ns)), V_U64(p->times),
			   b ? V_U64(b->waker.pid) : V_NONE, b ? V_U64(b->waker.tid) : V_NONE, V_TEXT(b ? waker : NULL),
			   b ? V_U64(b->ns) : V_NONE);
	}
	map__free(&best);
	table__sort(table, "wait_ns");
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *threads, *parts;
	struct offcpu o = { 0 };
	struct findings_listener listener = { on_interval, &o };
	struct findings *findings = NULL;
	int err = causes__new(&o.causes, args);

	map__init(&o.threads, sizeof(struct thread_key), sizeof(struct thread_time));
	map__init(&o.parts, sizeof(struct part_key), sizeof(struct part));
	map__init(&o.wakers, sizeof(struct waker_key), sizeof(u64));
	if (!err)
		err = findings__read(&findings, args, &listener);
	if (!err) {
		o.activity = findings__activity(findings);
		findings__add_to(findings, args, out);
		err = causes__report(o.causes, o.activity, args, out);
	}
	threads = REPORT_TABLE(out, "threads", "Threads: where their time went", thread_columns);
	parts = REPORT_TABLE(out, "waits", "What they waited for", part_columns);
	threads->limit = parts->limit = 30;
	if (!err) {
		find_tops(&o);
		fill_threads(&o, args, threads);
		err = fill_parts(&o, args, parts);
	}
	if (!o.threads.n)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	MAPS_FREE(&o.threads, &o.parts, &o.wakers);
	causes__free(o.causes);
	findings__free(findings);
	return err;
}

REPORT(offcpu) = {
	.name = "offcpu",
	.doc = "why threads did not run: what they waited for, how long, and which thread ended the wait",
	.kinds = "sched_run,sched_off",
	.run = run,
};
