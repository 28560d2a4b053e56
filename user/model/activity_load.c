// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the spans of one window into lists for each thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/activity_private.h"
#include "model/gil.h"
#include "model/losses.h"
#include "util/array.h"
#include "util/compare.h"

static struct activity_thread *thread_of(struct activity *a, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };

	return a->chosen ? map__find(&a->threads, &key) : map__get(&a->threads, &key);
}

static int add(struct sched_times *l, const struct sched_time *s)
{
	if (!array__push(l->spans, l->n, *s))
		return -ENOMEM;
	return 0;
}

static int on_span(const struct sched_span *s, void *arg)
{
	struct activity *a = arg;
	struct sched_time time = {
		s->start,      s->end,	   s->wake, { s->waker_pid, s->waker_tid }, { s->current_pid, s->current_tid },
		(u32)s->state, s->stopper,
	};
	int err = a->flags & ACTIVITY_CPUS ? cpu_sums__add(&a->cpus, s, &a->q) : 0;
	struct activity_thread *t;

	if (err || !trace_ids__have(&a->q.pids, s->pid) || !trace_ids__have(&a->q.tids, s->tid))
		return err;
	t = thread_of(a, s->pid, s->tid);
	if (!t)
		return a->chosen ? 0 : -ENOMEM;
	if (s->start >= s->end)
		return 0;
	return add(s->on_cpu ? &t->on_cpu : &t->off_cpu, &time);
}

COMPARE_BY(by_start, struct sched_time, ASCENDING(from), ASCENDING(to))

/* Spans are in order in almost all files. Overlaps are cut, because a file is untrusted. */
static void sort(struct sched_times *l)
{
	bool ordered = true;
	u32 n = 0;

	for (u32 i = 1; ordered && i < l->n; i++)
		ordered = l->spans[i - 1].to <= l->spans[i].from;
	l->current = 0;
	if (ordered)
		return;
	qsort(l->spans, l->n, sizeof(*l->spans), by_start);
	for (u32 i = 0; i < l->n; i++) {
		struct sched_time s = l->spans[i];

		if (n && s.from < l->spans[n - 1].to)
			s.from = l->spans[n - 1].to;
		if (s.from < s.to)
			l->spans[n++] = s;
	}
	l->n = n;
}

static int on_segment(const struct gil_segment *p, void *arg)
{
	struct activity_thread *t = thread_of(arg, p->gil.pid, p->waiter);
	struct listed_span span = { p->from, p->to, p->holding, p->holder_stack, p->holder };

	if (!t)
		return ((struct activity *)arg)->chosen ? 0 : -ENOMEM;
	return span_list__add(&t->gil, &span);
}

static int on_off_stacks(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), stack);
	struct common_fields f = common_fields__of(rows__event(rows));
	struct activity *a = arg;
	struct activity_thread *t;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct listed_span span = { .from = (u64)view__s64(&v, f.start), .to = (u64)view__s64(&v, f.time) };

		t = thread_of(a, (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid));
		span.detail = (u32)view__s64(&v, stack);
		if (t)
			err = span_list__add(&t->off_stacks, &span);
		else if (!a->chosen)
			err = -ENOMEM;
	}
	return err;
}

static int on_throttle(const struct throttle *t, void *arg)
{
	struct listed_span span = { .from = t->since, .to = t->time };
	struct activity *a = arg;
	const struct query *q = a->selected;
	struct span_list *l;

	if (a->flags & ACTIVITY_CPUS && t->time >= q->from && (!q->to || t->time < q->to) &&
	    cpu_sums__add_throttle(&a->cpus, t))
		return -ENOMEM;
	if (!throttle__in_most(t->throttled_periods, t->periods))
		return 0;
	l = map__get(&a->quotas, &t->pid);
	return l ? span_list__add(l, &span) : -ENOMEM;
}

static int on_losses(const struct rows *rows, void *arg)
{
	struct activity *a = arg;
	const struct schema_family *sched = schema__family(trace__schema(a->q.trace), "sched");
	int err = 0;

	ROWS_WHILE(!err && sched, v, rows) {
		struct loss loss = { .family = (u16)view__get(&v, "family"), .reason = view__get(&v, "reason") };
		struct listed_span span = { .from = (u64)view__get(&v, "first"), .to = (u64)view__get(&v, "last") + 1 };

		if (loss.family == sched->id && loss__effect(&loss) == EFFECT_MISSING)
			err = span_list__add(&a->lost, &span);
	}
	return err;
}

/*
 * Reads quotas, losses and the CPU time of other processes once for the whole trace: they are few, and recorded up to a
 * second after the time that they describe.
 */
static int load_whole(struct activity *a)
{
	struct query whole = a->q;
	int err;

	if (a->has_whole)
		return 0;
	a->has_whole = true;
	whole.from = whole.to = 0;
	whole.tids.n = 0;
	err = throttles__read(&whole, on_throttle, a);
	for (u32 i = 0; i < a->quotas.n; i++)
		span_list__sort(map__value(&a->quotas, i));
	/* a loss record belongs to no process */
	whole.pids.n = 0;
	if (!err)
		err = query__read_kind(&whole, "meta_loss", on_losses, a);
	if (!err && a->flags & ACTIVITY_CPUS)
		err = cpu_sums__read_others(&a->cpus, &a->q);
	span_list__sort(&a->lost);
	return err;
}

/* Loads the holders of GILs. If the window follows the last one, reading continues where it ended. */
static int load_holders(struct activity *a)
{
	const struct gil_listener listener = { .on_segment = on_segment };
	int err = 0;

	if (a->gil && (!a->gil_to || a->gil_to != a->q.from)) {
		gil_model__free(a->gil);
		a->gil = NULL;
	}
	if (!a->gil) {
		for (u32 i = 0; i < a->threads.n; i++)
			((struct activity_thread *)map__value(&a->threads, i))->gil.n = 0;
		err = gil_model__new(&a->gil, a->q.trace, a->q.from, 0, &a->q.pids, &listener, a);
	}
	a->gil_to = a->q.to;
	return err ? err : gil_model__advance(a->gil, a->q.to);
}

/* With ACTIVITY_IN_CALLS, threads that have only spans of calls are part of the model, too. */
static int on_calls(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct activity *a = arg;
	struct common_fields f = common_fields__of(v.event);
	int err = 0;

	if ((a->flags & ACTIVITY_IN_CALLS) && !a->chosen)
		for (; v.i < rows__count(rows); v.i++)
			if (!thread_of(a, (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid)))
				return -ENOMEM;
	if ((a->flags & ACTIVITY_DETAILS) && !strcmp(v.event->name, "sample_off"))
		err = on_off_stacks(rows, a);
	return err ? err : waits__feed(a->waits, rows);
}

void activity_thread__forget(struct activity_thread *t)
{
	free(t->on_cpu.spans);
	free(t->off_cpu.spans);
	t->on_cpu = t->off_cpu = (struct sched_times){ 0 };
	span_list__free(&t->gil);
	span_list__free(&t->off_stacks);
}

/* Reuses the last window's memory. A thread without spans there may have ended, so its memory is freed. */
static void empty_thread(struct activity_thread *t, u64 from)
{
	span_list__drop_before(&t->gil, from);
	if (!t->on_cpu.n && !t->off_cpu.n && !t->gil.n) {
		activity_thread__forget(t);
		return;
	}
	t->on_cpu.n = t->off_cpu.n = t->off_stacks.n = 0;
}

/* Reads also the spans of processes that are not selected if their sums are asked for. */
static int read_spans(struct activity *a)
{
	struct query q = a->q;
	u32 parts = SPAN_WHY | SPAN_WAKER;

	if (a->flags & ACTIVITY_CPUS) {
		parts |= SPAN_LEFT | SPAN_CPU | SPAN_NEXT;
		q.pids.n = q.tids.n = 0;
	}
	return sched_spans__read(&q, parts, on_span, a);
}

int activity__load(struct activity *a, u64 from, u64 to)
{
	int err = load_whole(a);

	a->q.from = from;
	a->q.to = to;
	waits__forget(a->waits);
	for (u32 i = 0; i < a->threads.n; i++)
		empty_thread(map__value(&a->threads, i), from);
	if (!err && *waits__kinds(a->waits))
		err = query__read(&a->q, waits__kinds(a->waits), on_calls, a);
	if (!err)
		err = read_spans(a);
	if (!err && (a->flags & ACTIVITY_HOLDERS))
		err = load_holders(a);
	MAP_EACH(struct activity_thread *t, &a->threads) {
		sort(&t->on_cpu);
		sort(&t->off_cpu);
		span_list__sort(&t->gil);
		span_list__sort(&t->off_stacks);
	}
	return err;
}
