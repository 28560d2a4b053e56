// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/activity_private.h"
#include "model/gil.h"
#include "model/sched_span.h"
#include "util/search.h"

u32 activity_window = 128u << 10;
u32 activity_windows_max = 64;

static bool has_sched(const struct trace *t)
{
	u32 n;
	const struct kind_summary *kinds = trace__kinds(t, &n);

	for (u32 i = 0; i < n; i++)
		if (!strcmp(kinds[i].event->name, "sched_run") || !strcmp(kinds[i].event->name, "sched_off"))
			return true;
	return false;
}

int activity__new(struct activity **out, const struct query *q, u32 flags)
{
	struct activity *a = calloc(1, sizeof(*a));
	int err;

	*out = a;
	if (!a)
		return -ENOMEM;
	a->q = *q;
	a->asked = q;
	a->flags = flags;
	a->has_sched = has_sched(q->trace);
	map__init(&a->threads, sizeof(struct thread_key), sizeof(struct activity_thread));
	map__init(&a->quotas, sizeof(u32), sizeof(struct span_list));
	err = lock_futexes__load(&a->locks, q->trace);
	if (err)
		return err;
	return waits__new(&a->waits, trace__schema(q->trace), q->names, a->locks, flags & ACTIVITY_DETAILS);
}

void activity__free(struct activity *a)
{
	if (!a)
		return;
	for (u32 i = 0; i < a->threads.n; i++)
		activity_thread__forget(map__value(&a->threads, i));
	map__free(&a->threads);
	for (u32 i = 0; i < a->quotas.n; i++)
		span_list__free(map__value(&a->quotas, i));
	map__free(&a->quotas);
	span_list__free(&a->lost);
	waits__free(a->waits);
	lock_futexes__free(a->locks);
	free(a);
}

const char *activity__name(const struct activity *a, u32 what)
{
	return what < ACTIVITY_WHAT ? waits__reason(a->waits, what) : activity_cause__text(what - ACTIVITY_WHAT);
}

enum activity_cause activity__cause(const struct activity *a, u32 what)
{
	return what < ACTIVITY_WHAT ? waits__cause(a->waits, what) : what - ACTIVITY_WHAT;
}

/* The part of a thread's time that is being cut into intervals. */
struct cutting {
	struct activity *a;
	struct activity_thread *thread; /* NULL: the thread was not loaded */
	struct thread_waits *waits; /* NULL: it has none */
	const struct span_list *quota; /* NULL: no quota throttled its process */
	struct activity_interval now;
	const struct sched_time *off; /* the span at the current time, NULL: on a CPU, or unknown */
	u64 span_from;
	int (*fn)(const struct activity_interval *i, void *arg);
	void *arg;
};

static int hand_over(struct cutting *c, u64 from, u64 to)
{
	struct activity_thread *t = c->thread;
	struct activity_interval *i = &c->now;

	if (from >= to)
		return 0;
	i->from = from;
	i->to = to;
	i->begins = !t || t->span_from != c->span_from || t->last_what != i->what;
	if (t) {
		t->span_from = c->span_from;
		t->last_what = i->what;
	}
	return c->fn(i, c->arg);
}

/* Why nothing is known of [from, to). A record's time is the end of its span, so one that is missing here was lost in (from, to]. */
static enum activity_cause unknown_cause(const struct activity *a, u64 from, u64 to)
{
	u32 i = span_list__find(&a->lost, from + 1);

	if (!a->has_sched)
		return ACTIVITY_NOT_RECORDED;
	return i < a->lost.n && a->lost.spans[i].from <= to ? ACTIVITY_LOST : ACTIVITY_UNOBSERVED;
}

/* Decided by the time at which the thread became runnable, so that one wait for a CPU has one cause. */
static enum activity_cause runnable_cause(const struct cutting *c)
{
	u64 until = ~0ull;

	return c->quota && c->off && span_list__at(c->quota, c->off->wake, &until) ? ACTIVITY_QUOTA : ACTIVITY_CPU;
}

/* The cause for a thread that is in no recorded call */
static enum activity_cause plain_cause(const struct cutting *c, u64 from, u64 to)
{
	switch (c->now.state) {
	case ACTIVITY_RUNNING:
		return ACTIVITY_ON_CPU;
	case ACTIVITY_RUNNABLE:
		return runnable_cause(c);
	case ACTIVITY_UNKNOWN:
		return unknown_cause(c->a, from, to);
	default:
		return c->off->state == SCHED_SLEEP   ? ACTIVITY_ASLEEP :
		       c->off->state == SCHED_BLOCKED ? ACTIVITY_UNINTERRUPTIBLE :
							ACTIVITY_STOPPED;
	}
}

static void add_detail(struct cutting *c, const struct wait_detail *d)
{
	struct activity_interval *i = &c->now;

	i->object = d ? d->object : 0;
	i->stack = d ? d->stack : 0;
	i->by = d && d->by_tid ? (struct thread_key){ d->by_pid, d->by_tid } : i->waker;
	i->by_stack = d ? d->by_stack : 0;
	i->is_free = false;
}

/* The time line of GIL holders is used before the wait's own event, which knows the holder only at the wait's end. */
static void add_holder(struct cutting *c, const struct listed_span *gil)
{
	c->now.is_free = gil->what == GIL_FREE;
	c->now.by = gil->what == GIL_HELD ? (struct thread_key){ c->now.thread.pid, gil->by } :
					    (struct thread_key){ 0 };
	c->now.by_stack = gil->what == GIL_HELD ? gil->of : 0;
}

/* Cuts a part where the GIL's holder or the stack changes, and hands over each interval with its details. */
static int hand_over_details(struct cutting *c, const struct wait_detail *d, u64 from, u64 to)
{
	const struct listed_span *gil = NULL, *stack;
	int err = 0;

	if (!c->thread)
		return hand_over(c, from, to);
	for (u64 until; !err && from < to; from = until) {
		until = to;
		add_detail(c, d);
		if (c->now.cause == ACTIVITY_GIL)
			gil = span_list__at(&c->thread->gil, from, &until);
		if (gil)
			add_holder(c, gil);
		stack = c->now.state != ACTIVITY_RUNNING ? span_list__at(&c->thread->off_stacks, from, &until) : NULL;
		c->now.off_stack = stack ? stack->of : 0;
		err = hand_over(c, from, until);
	}
	return err;
}

static int on_part(const struct wait_part *p, void *arg)
{
	struct cutting *c = arg;

	c->now.what = p->reason ? p->reason : ACTIVITY_WHAT + plain_cause(c, p->from, p->to);
	c->now.cause = activity__cause(c->a, c->now.what);
	if (c->a->flags & ACTIVITY_DETAILS)
		return hand_over_details(c, p->detail, p->from, p->to);
	return hand_over(c, p->from, p->to);
}

/* The span at `time`, NULL: none; *until is brought forward to where that changes. `time` does not fall from call to call. */
static const struct sched_time *span_at(struct sched_times *l, u64 time, u64 *until)
{
	const struct sched_time *s;
	u64 change;

	while (l->at < l->n && l->spans[l->at].to <= time)
		l->at++;
	if (l->at == l->n)
		return NULL;
	s = &l->spans[l->at];
	change = s->from > time ? s->from : s->to;
	*until = change < *until ? change : *until;
	return s->from > time ? NULL : s;
}

/* Sets the state at `time`, and *until to the time at which it changes. */
static void set_state(struct cutting *c, u64 time, u64 *until)
{
	struct activity_interval *i = &c->now;
	const struct sched_time *on = NULL;

	if (c->thread)
		on = span_at(&c->thread->on, time, until);
	c->off = c->thread && !on ? span_at(&c->thread->off, time, until) : NULL;
	c->span_from = on ? on->from : c->off ? c->off->from : 0;
	i->state = on ? ACTIVITY_RUNNING : ACTIVITY_UNKNOWN;
	i->waker = (struct thread_key){ 0, 0 };
	i->uninterruptible = false;
	if (!c->off)
		return;
	i->state = time < c->off->wake ? ACTIVITY_BLOCKED : ACTIVITY_RUNNABLE;
	if (i->state == ACTIVITY_RUNNABLE)
		return;
	*until = c->off->wake < *until ? c->off->wake : *until;
	i->waker = c->off->waker;
	i->uninterruptible = c->off->state == SCHED_BLOCKED;
}

static int cut(struct cutting *c, u64 from, u64 to)
{
	struct wait_part part = { 0 };
	int err = 0;

	c->waits = waits__thread(c->a->waits, c->now.thread.pid, c->now.thread.tid);
	c->quota = map__find(&c->a->quotas, &c->now.thread.pid);
	for (u64 until; !err && from < to; from = until) {
		until = to;
		set_state(c, from, &until);
		part.from = from;
		part.to = until;
		if (c->now.state == ACTIVITY_BLOCKED || (c->a->flags & ACTIVITY_IN_CALLS))
			err = waits__explain(c->a->waits, c->waits, c->now.uninterruptible, from, until, on_part, c);
		else
			err = on_part(&part, c);
	}
	return err;
}

/*
 * Cuts the part of a thread's life that the recording covers. The thread's spans take precedence over the recorded
 * start and end of its life.
 */
static struct trace_window life_of(const struct activity *a, const struct thread_key *key,
				   const struct activity_thread *t, struct trace_window all)
{
	const struct task *task = names__task(a->q.names, key->pid, key->tid);
	struct trace_window w = all;
	const struct sched_times *lists[] = { &t->on, &t->off };

	if (w.from < a->q.start)
		w.from = a->q.start < w.to ? a->q.start : w.to;
	if (task && task->start > w.from)
		w.from = task->start;
	if (task && task->end && task->end < w.to)
		w.to = task->end;
	for (u32 i = 0; i < 2; i++) {
		const struct sched_times *l = lists[i];

		if (l->n && l->spans[0].from < w.from)
			w.from = l->spans[0].from > all.from ? l->spans[0].from : all.from;
		if (l->n && l->spans[l->n - 1].to > w.to)
			w.to = l->spans[l->n - 1].to < all.to ? l->spans[l->n - 1].to : all.to;
	}
	return w;
}

/* Hands over the loaded intervals of one thread, and before its first window the unknown time. */
static int hand_over_thread(struct cutting *c, struct trace_window all)
{
	struct activity_thread *t = c->thread;
	struct trace_window life = life_of(c->a, &c->now.thread, t, all);
	u64 from = t->done ? t->done : life.from, to = life.to < c->a->q.to ? life.to : c->a->q.to;
	u64 known = from < c->a->q.from ? c->a->q.from : from;
	struct wait_part before = { .from = from, .to = known };
	int err = 0;

	if (known >= to)
		return 0;
	c->now.state = ACTIVITY_UNKNOWN;
	c->off = NULL;
	c->span_from = 0;
	if (from < known)
		err = on_part(&before, c);
	t->done = to;
	return err ? err : cut(c, known, to);
}

/*
 * How many windows the events of that time need, if they were evenly distributed. Each window reads the chunks
 * that reach into it and visits each thread, so the number is bounded.
 */
static u32 windows(const struct trace_summary *t, const struct trace_window *all)
{
	double part = (double)(all->to - all->from) / (double)(t->last - t->first + 1);
	double n = part * (double)t->events / activity_window + 1;

	return n < activity_windows_max ? (u32)n : activity_windows_max;
}

int activity__read(struct activity *a, int (*fn)(const struct activity_interval *i, void *arg), void *arg)
{
	const struct trace_summary *t = trace__summary(a->q.trace);
	struct trace_window all = {
		.from = a->asked->from > t->first ? a->asked->from : t->first,
		.to = a->asked->to && a->asked->to <= t->last ? a->asked->to : t->last + 1,
	};
	u64 step = all.to > all.from ? (all.to - all.from) / windows(t, &all) + 1 : 0;
	int err = 0;

	for (u64 at = all.from; !err && at < all.to; at += step) {
		err = activity__load_window(a, at, at + step < all.to ? at + step : all.to);
		for (u32 i = 0; !err && i < a->threads.n; i++) {
			struct cutting c = { .a = a, .thread = map__value(&a->threads, i), .fn = fn, .arg = arg };

			c.now.thread = *(const struct thread_key *)map__key(&a->threads, i);
			err = hand_over_thread(&c, all);
		}
	}
	return err;
}

int activity__add_thread(struct activity *a, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };

	a->chosen = true;
	waits__choose(a->waits, &a->threads);
	return map__get(&a->threads, &key) ? 0 : -ENOMEM;
}

int activity__load(struct activity *a, u64 from, u64 to)
{
	return activity__load_window(a, from, to);
}

/* The first that ends after `time` */
static void seek(struct sched_times *l, u64 time)
{
	l->at = SEARCH(l->n, i, l->spans[i].to <= time);
}

int activity__of(struct activity *a, u32 pid, u32 tid, u64 from, u64 to,
		 int (*fn)(const struct activity_interval *i, void *arg), void *arg)
{
	struct cutting c = { .a = a, .now.thread = { pid, tid }, .fn = fn, .arg = arg };

	c.thread = map__find(&a->threads, &c.now.thread);
	if (c.thread) {
		seek(&c.thread->on, from);
		seek(&c.thread->off, from);
	}
	return cut(&c, from, to);
}
