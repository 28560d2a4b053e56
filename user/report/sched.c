// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* By thread: time on a CPU, time waiting for one, and what else it waited for. */
#include "report/sched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text.h"

/* enum sched_state of bpf/probes/sched/sched.h; by number, as traces outlive headers */
enum { STATE_RUNNABLE = 0, STATE_SLEEP = 1, STATE_BLOCKED = 2, STATE_NEW = 9 };

static struct sched_thread *thread_of(struct sched_report *s, const struct view *v, const struct common_fields *f)
{
	struct sched_key key = { (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid) };

	return map__get(&s->threads, &key);
}

/* Spans that cross a border of --time count as far as they are inside: these are sums, not calls. */
struct read {
	struct sched_report *sched;
	const struct query *args;
};

/* The kernel's own count for a span, as far as the span is inside the time asked for. */
static u64 counted_inside(const struct query *args, u64 counted, u64 start, u64 end)
{
	u64 inside = query__inside(args, start, end);

	return inside == end - start ? counted : (u64)((double)counted * (double)inside / (double)(end - start));
}

static int on_runs(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct common_fields f = common_fields__of(v.event);
	const struct schema_field *state = schema_event__field(v.event, "state");
	const struct schema_field *charged = schema_event__field(v.event, "charged");
	struct sched_thread *t;
	struct read *r = arg;
	u64 start, end;

	for (; v.i < rows__count(rows); v.i++) {
		t = thread_of(r->sched, &v, &f);
		if (!t)
			return -ENOMEM;
		start = (u64)view__s64(&v, f.start);
		end = (u64)view__s64(&v, f.time);
		t->run_ns += query__inside(r->args, start, end);
		t->charged_ns += counted_inside(r->args, (u64)view__s64(&v, charged), start, end);
		/* still running when the trace ended: it has not been switched out */
		if (view__s64(&v, f.flags) & EVENT_OPEN)
			continue;
		t->switches++;
		t->preempted += view__s64(&v, state) == STATE_RUNNABLE;
	}
	return 0;
}

static int add_waker(struct sched_report *s, struct sched_thread *t, const struct sched_waker_key *key)
{
	u64 *n = map__get(&s->wakers, key);

	if (!n)
		return -ENOMEM;
	if (++*n > t->waker_count) {
		t->waker_count = *n;
		t->waker = key->waker;
	}
	return 0;
}

struct off_fields {
	struct common_fields common;
	const struct schema_field *state, *wake, *waited, *waker_pid, *waker_tid;
};

static int on_off(struct read *r, const struct view *v, const struct off_fields *f)
{
	u64 start = (u64)view__s64(v, f->common.start), end = (u64)view__s64(v, f->common.time);
	u64 wake = (u64)view__s64(v, f->wake), waited;
	struct sched_thread *t = thread_of(r->sched, v, &f->common);
	s64 state = view__s64(v, f->state);
	struct sched_waker_key key = {
		{ (u32)view__s64(v, f->common.pid), (u32)view__s64(v, f->common.tid) },
		{ (u32)view__s64(v, f->waker_pid), (u32)view__s64(v, f->waker_tid) },
	};
	bool woken, slept = state != STATE_RUNNABLE && state != STATE_NEW;

	if (!t)
		return -ENOMEM;
	t->waited_ns += counted_inside(r->args, (u64)view__s64(v, f->waited), start, end);
	/* no wake-up: it was runnable all the time, or it slept to the end */
	woken = slept && wake;
	if (!wake)
		wake = slept ? end : start;
	wake = wake < start ? start : wake > end ? end : wake;
	t->runnable_ns += query__inside(r->args, wake, end);
	waited = query__inside(r->args, start, wake);
	*(state == STATE_SLEEP ? &t->sleep_ns : state == STATE_BLOCKED ? &t->blocked_ns : &t->other_ns) += waited;
	if (!woken || (view__s64(v, f->common.flags) & EVENT_OPEN))
		return 0;
	if (key.waker.tid && add_waker(r->sched, t, &key))
		return -ENOMEM;
	return stats__add(&t->latency, &r->sched->pool, end - wake);
}

static int on_offs(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct off_fields f = {
		.common = common_fields__of(v.event),
		.state = schema_event__field(v.event, "state"),
		.wake = schema_event__field(v.event, "wake"),
		.waited = schema_event__field(v.event, "waited"),
		.waker_pid = schema_event__field(v.event, "waker_pid"),
		.waker_tid = schema_event__field(v.event, "waker_tid"),
	};
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_off(arg, &v, &f);
	return err;
}

int sched_report__read(struct sched_report *s, const struct query *args)
{
	struct read r = { s, args };
	int err;

	*s = (struct sched_report){ 0 };
	map__init(&s->threads, sizeof(struct sched_key), sizeof(struct sched_thread));
	map__init(&s->wakers, sizeof(struct sched_waker_key), sizeof(u64));
	err = query__read_kind(args, "sched_run", on_runs, &r);
	return err ? err : query__read_kind(args, "sched_off", on_offs, &r);
}

void sched_report__free(struct sched_report *s)
{
	u32 i;

	for (i = 0; i < s->threads.n; i++)
		stats__free(&((struct sched_thread *)map__value(&s->threads, i))->latency, &s->pool);
	map__free(&s->threads);
	map__free(&s->wakers);
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Wanted CPU", VALUE_U64, SHOW_NS },
	{ "sleep_ns", "Asleep", VALUE_U64, SHOW_NS },
	{ "blocked_ns", "Blocked", VALUE_U64, SHOW_NS },
	{ "other_ns", "Stopped etc.", VALUE_U64, SHOW_NEVER },
	{ "charged_ns", "CPU time, kernel's count", VALUE_U64, SHOW_NEVER },
	{ "waited_ns", "Wait for CPU, kernel's count", VALUE_U64, SHOW_NEVER },
	{ "switches", "Switches", VALUE_U64, SHOW_COUNT },
	{ "preempted", "Preempted", VALUE_U64, SHOW_COUNT },
	{ "wakes", "Wakes", VALUE_U64, SHOW_NEVER },
	{ "latency_median_ns", "Wake median", VALUE_DOUBLE, SHOW_NS },
	{ "latency_p99_ns", "p99", VALUE_U64, SHOW_NS },
	{ "latency_max_ns", "max", VALUE_U64, SHOW_NS },
	{ "waker_pid", "Waker's PID", VALUE_U64, SHOW_NEVER },
	{ "waker_tid", "Waker's TID", VALUE_U64, SHOW_NEVER },
	{ "waker", "Woken mostly by", VALUE_TEXT, SHOW_PLAIN },
	{ "waker_wakes", "Wakes by it", VALUE_U64, SHOW_NEVER },
};

static void fill(struct sched_report *s, const struct query *args, struct table *table)
{
	struct sched_thread *t;
	const struct sched_key *k;
	char waker[64];
	bool known;
	u32 i;

	for (i = 0; i < s->threads.n; i++) {
		k = map__key(&s->threads, i);
		t = map__value(&s->threads, i);
		known = t->waker_count != 0;
		names__label(args->names, waker, sizeof(waker), t->waker.pid, t->waker.tid);
		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(names__comm(args->names, k->pid, k->tid)),
			   V_U64(t->run_ns), V_U64(t->runnable_ns), V_U64(t->sleep_ns), V_U64(t->blocked_ns),
			   V_U64(t->other_ns), V_U64(t->charged_ns), V_U64(t->waited_ns), V_U64(t->switches),
			   V_U64(t->preempted), V_U64(t->latency.count),
			   t->latency.count ? V_DBL(stats__median(&t->latency)) : V_NONE,
			   t->latency.count ? V_U64(stats__percentile(&t->latency, 99)) : V_NONE,
			   t->latency.count ? V_U64(t->latency.max) : V_NONE, known ? V_U64(t->waker.pid) : V_NONE,
			   known ? V_U64(t->waker.tid) : V_NONE, V_TEXT(known ? waker : NULL),
			   known ? V_U64(t->waker_count) : V_NONE);
	}
	table__sort(table, "run_ns");
}

void sched_report__find(const struct sched_report *s, const struct query *args, struct report_output *out)
{
	const struct sched_key *k;
	const struct sched_thread *t, *worst = NULL;
	u64 run = 0, duration = query__duration(args);
	char buf[TEXT_NUMBER], who[64];
	u32 i, at = 0;

	for (i = 0; i < s->threads.n; i++) {
		t = map__value(&s->threads, i);
		run += t->run_ns;
		if (!worst || t->runnable_ns > worst->runnable_ns) {
			worst = t;
			at = i;
		}
	}
	if (!worst)
		return;
	if (!run)
		report_output__finding(out, "%u thread%s did not run on a CPU.", s->threads.n,
				       s->threads.n == 1 ? "" : "s");
	else
		report_output__finding(out, "%u thread%s ran for %s in all: %.1f CPUs busy on average.", s->threads.n,
				       s->threads.n == 1 ? "" : "s", text__ns(buf, sizeof(buf), run),
				       duration ? (double)run / (double)duration : 0);
	REPORT_FIGURES(out, FIGURE("threads", V_U64(s->threads.n)), FIGURE("run_ns", V_U64(run)));
	if (worst->runnable_ns) {
		k = map__key(&s->threads, at);
		report_output__finding(out, "%s waited longest for a CPU: %s, %.0f%% of the time.",
				       names__label(args->names, who, sizeof(who), k->pid, k->tid),
				       text__ns(buf, sizeof(buf), worst->runnable_ns),
				       table__percent(worst->runnable_ns, duration));
		REPORT_FIGURES(out, FIGURE("pid", V_U64(k->pid)), FIGURE("tid", V_U64(k->tid)),
			       FIGURE("runnable_ns", V_U64(worst->runnable_ns)));
	}
}

static int run(const struct query *args, struct report_output *out)
{
	struct sched_report s;
	struct table *t;
	int err = sched_report__read(&s, args);

	t = REPORT_TABLE(out, "threads", "Threads: on the CPU, waiting for one, waiting for something else", columns);
	t->limit = 40;
	fill(&s, args, t);
	if (!s.threads.n)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	sched_report__find(&s, args, out);
	if (s.pool.approximate)
		report_output__note(out, "Medians and p99 of threads beyond %u wake-ups are within 0.4%%.",
				    STATS_EXACT);
	sched_report__free(&s);
	return err;
}

REPORT(sched) = {
	.name = "sched",
	.doc = "threads: time on CPU, waiting for a CPU, asleep, blocked; wake-up latency and wakers",
	.kinds = "sched_run,sched_off",
	.run = run,
};
