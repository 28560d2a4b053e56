// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report sched: each thread's time on a CPU, waiting for one, and waiting for other things. */
#include "report/os/sched.h"

#include <errno.h>

#include "model/sched_span.h"
#include "output/text.h"
#include "util/saturate.h"

/* Spans that cross a border of --time count with the part inside, since these are sums, not calls. */
struct read {
	struct sched_report *sched;
	const struct query *args;
};

/* Scales the kernel's own count for a span to the part of the span in the selected time. */
static u64 counted_inside(const struct query *args, u64 counted, u64 start, u64 end)
{
	u64 inside = query__inside(args, start, end);

	return inside == end - start ? counted :
				       saturate__u64((double)counted * (double)inside / (double)(end - start));
}

static void on_run(struct read *r, struct sched_thread *t, const struct sched_span *s)
{
	t->run_ns += query__inside(r->args, s->start, s->end);
	t->charged_ns += counted_inside(r->args, s->counted, s->start, s->end);
	/* The thread ran when the trace ended and was not switched out. */
	if (s->open)
		return;
	t->switches++;
	t->preempted += s->state == SCHED_RUNNABLE;
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

static int on_off(struct read *r, struct sched_thread *t, const struct sched_span *s)
{
	struct sched_waker_key key = { { s->pid, s->tid }, { s->waker_pid, s->waker_tid } };
	u64 waited = query__inside(r->args, s->start, s->wake);

	t->waited_ns += counted_inside(r->args, s->counted, s->start, s->end);
	t->runnable_ns += query__inside(r->args, s->wake, s->end);
	*(s->state == SCHED_SLEEP ? &t->sleep_ns : s->state == SCHED_BLOCKED ? &t->blocked_ns : &t->other_ns) += waited;
	if (!s->woken || s->open)
		return 0;
	if (s->waker_tid && add_waker(r->sched, t, &key))
		return -ENOMEM;
	return stats__add(&t->latency, &r->sched->pool, s->end - s->wake);
}

static int on_span(const struct sched_span *s, void *arg)
{
	struct sched_key key = { s->pid, s->tid };
	struct read *r = arg;
	struct sched_thread *t = map__get(&r->sched->threads, &key);

	if (!t)
		return -ENOMEM;
	if (!s->on_cpu)
		return on_off(r, t, s);
	on_run(r, t, s);
	return 0;
}

int sched_report__read(struct sched_report *s, const struct query *args)
{
	struct read r = { s, args };

	*s = (struct sched_report){ 0 };
	map__init(&s->threads, sizeof(struct sched_key), sizeof(struct sched_thread));
	map__init(&s->wakers, sizeof(struct sched_waker_key), sizeof(u64));
	return sched_spans__read(args, SPAN_WHY | SPAN_LEFT | SPAN_WAKER | SPAN_OPEN | SPAN_COUNTED, on_span, &r);
}

void sched_report__free(struct sched_report *s)
{
	u32 i;

	for (i = 0; i < s->threads.n; i++)
		stats__free(&((struct sched_thread *)map__value(&s->threads, i))->latency, &s->pool);
	MAPS_FREE(&s->threads, &s->wakers);
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS },
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
	{ "waker_wakes", "Wakes by that thread", VALUE_U64, SHOW_NEVER },
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
		table__add(table, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(args->names, k->pid, k->tid)),
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

static void add_findings(const struct sched_report *s, const struct query *args, struct report_output *out)
{
	const struct sched_key *k;
	const struct sched_thread *t, *worst = NULL;
	u64 run = 0, own, duration = query__measured(args);
	char who[64];
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
		report_output__finding(out, "%u thread%s did not run on a CPU.", s->threads.n, text__s(s->threads.n));
	else
		report_output__finding(out, "%u thread%s ran for %s in all: %.1f CPUs busy on average.", s->threads.n,
				       text__s(s->threads.n), TEXT_NS(run),
				       duration ? (double)run / (double)duration : 0);
	REPORT_FIGURES(out, FIGURE("threads", V_U64(s->threads.n)), FIGURE("run_ns", V_U64(run)));
	if (worst->runnable_ns) {
		k = map__key(&s->threads, at);
		/* As in report offcpu, the percentage is of the time in which the thread existed. */
		own = worst->run_ns + worst->runnable_ns + worst->sleep_ns + worst->blocked_ns + worst->other_ns;
		report_output__finding(out, "%s waited longest for a CPU: %s, %.0f%% of %s.",
				       names__label(args->names, who, sizeof(who), k->pid, k->tid),
				       TEXT_NS(worst->runnable_ns), table__percent(worst->runnable_ns, own),
				       TEXT_NS(own));
		REPORT_FIGURES(out, FIGURE("pid", V_U64(k->pid)), FIGURE("tid", V_U64(k->tid)),
			       FIGURE("runnable_ns", V_U64(worst->runnable_ns)), FIGURE("wall_ns", V_U64(own)));
	}
}

static int run(const struct query *args, struct report_output *out)
{
	struct sched_report s = { 0 };
	struct table *t;
	int err = sched_report__read(&s, args);

	t = REPORT_TABLE(out, "threads", "Threads: on the CPU, waiting for one, waiting for something else", columns);
	t->limit = 40;
	t->details = "preempted blocked_ns latency_p99_ns";
	fill(&s, args, t);
	if (!s.threads.n)
		report__nothing(args, out, "No scheduling was recorded", "sched");
	add_findings(&s, args, out);
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
