// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report offcpu: why threads did not run. A thread's time is running, runnable or waiting; waits are summed by the call
 * that the thread was in, in the wait profile, where waits too short for a stack count as those with one. A thread's
 * parts sum to the time for which it has scheduler events, except for rounding.
 */
#include <errno.h>

#include "report/causes.h"
#include "report/report.h"

struct part_key {
	struct thread_key thread;
	u32 reason;
};

struct part {
	u64 ns, times;
};

/* The part that a thread waited longest for */
struct top {
	u64 ns;
	u32 reason;
};

struct waker_key {
	struct part_key part;
	struct thread_key waker;
};

struct offcpu {
	const struct finding_input *in;
	struct map parts; /* struct part_key -> struct part */
	struct map tops; /* struct thread_key -> struct top */
	struct map wakers; /* struct waker_key -> u64 ns waited that it ended */
};

static int add_wait(struct offcpu *o, const struct profile_key *key, const struct profile_cell *cell)
{
	struct part_key part = { key->thread, key->reason };
	struct waker_key waker = { part, key->caused_by };
	struct part *p = map__get(&o->parts, &part);
	u64 *n;

	if (!p)
		return -ENOMEM;
	p->ns += cell->ns;
	p->times += cell->times;
	if (!key->caused_by.tid)
		return 0;
	n = map__get(&o->wakers, &waker);
	if (!n)
		return -ENOMEM;
	*n += cell->ns;
	return 0;
}

static int add_waits(struct offcpu *o)
{
	const struct profile *p = o->in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->cells.n; i++)
		if (profile__key(p, i)->state == ACTIVITY_BLOCKED && profile__cell(p, i)->ns)
			err = add_wait(o, profile__key(p, i), profile__cell(p, i));
	MAP_EACH_ENTRY(const struct part *part, const struct part_key *k, &o->parts) {
		struct top *top = err ? NULL : map__get(&o->tops, &k->thread);

		if (!top)
			return -ENOMEM;
		if (part->ns > top->ns)
			*top = (struct top){ part->ns, k->reason };
	}
	return err;
}

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NS },	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },	{ "top_percent", "Main wait (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "top", "Main wait", VALUE_TEXT, SHOW_PLAIN },
};

static u64 time_of(const struct profile_thread *t)
{
	return t->run + t->runnable + t->blocked;
}

static void fill_threads(const struct offcpu *o, const struct query *args, struct table *table)
{
	MAP_EACH_ENTRY(const struct profile_thread *t, const struct thread_key *k, &o->in->profile->threads) {
		const struct top *top = map__find(&o->tops, k);

		if (!time_of(t))
			continue;
		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(args->names, k->pid, k->tid)),
			   V_U64(time_of(t)), V_U64(t->run), V_U64(t->runnable), V_U64(t->blocked),
			   top ? V_DBL(table__percent(top->ns, time_of(t))) : V_NONE,
			   V_TEXT(top ? activity__name(o->in->activity, top->reason) : NULL));
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
	{ "waker", "Mostly caused by", VALUE_TEXT, SHOW_PLAIN },
	{ "waker_ns", "Time it caused", VALUE_U64, SHOW_NS },
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

static int fill_parts(const struct offcpu *o, const struct query *args, struct table *table)
{
	struct map best;
	int err = best_wakers(o, &best);

	for (u32 i = 0; !err && i < o->parts.n; i++) {
		const struct part_key *k = map__key(&o->parts, i);
		const struct part *p = map__value(&o->parts, i);
		const struct profile_thread *t = map__find(&o->in->profile->threads, &k->thread);
		const struct best_waker *b = map__find(&best, k);
		char waker[64];

		/* No waker is named if each ended only a small part. */
		if (b && b->ns < p->ns / 2)
			b = NULL;
		if (b)
			names__label(args->names, waker, sizeof(waker), b->waker.pid, b->waker.tid);
		table__add(table, V_U64(k->thread.pid), V_U64(k->thread.tid),
			   V_TEXT(NAMES_TITLE(args->names, k->thread.pid, k->thread.tid)),
			   V_TEXT(activity__name(o->in->activity, k->reason)), V_U64(p->ns),
			   V_DBL(table__percent(p->ns, time_of(t))), V_U64(p->times), b ? V_U64(b->waker.pid) : V_NONE,
			   b ? V_U64(b->waker.tid) : V_NONE, V_TEXT(b ? waker : NULL), b ? V_U64(b->ns) : V_NONE);
	}
	map__free(&best);
	table__sort(table, "wait_ns");
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *threads, *parts;
	struct offcpu o = { 0 };
	struct findings *findings;
	int err = findings__read(&findings, args, 0);

	map__init(&o.tops, sizeof(struct thread_key), sizeof(struct top));
	map__init(&o.parts, sizeof(struct part_key), sizeof(struct part));
	map__init(&o.wakers, sizeof(struct waker_key), sizeof(u64));
	if (!err) {
		o.in = findings__input(findings);
		findings__add_to(findings, args, out);
		err = causes__report(findings, out);
	}
	threads = REPORT_TABLE(out, "threads", "Threads: where their time went", thread_columns);
	parts = REPORT_TABLE(out, "waits", "What they waited for", part_columns);
	threads->limit = parts->limit = 30;
	if (!err)
		err = add_waits(&o);
	if (!err) {
		fill_threads(&o, args, threads);
		err = fill_parts(&o, args, parts);
	}
	if (!threads->n_rows)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	MAPS_FREE(&o.tops, &o.parts, &o.wakers);
	findings__free(findings);
	return err;
}

REPORT(offcpu) = {
	.name = "offcpu",
	.doc = "why threads did not run: what they waited for, how long, and which thread ended the wait",
	.kinds = "sched_run,sched_off",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_OFF_CPU,
};
