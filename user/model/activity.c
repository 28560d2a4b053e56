// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/activity_private.h"
#include "model/gil.h"
#include "util/search.h"

u32 activity_window = 128u << 10;
u32 activity_windows_max = 64;

int activity__new(struct activity **out, const struct query *q, u32 flags)
{
	struct activity *a = calloc(1, sizeof(*a));
	int err;

	*out = a;
	if (!a)
		return -ENOMEM;
	a->q = *q;
	a->selected = q;
	a->flags = flags;
	a->has_sched = trace__has(q->trace, "sched_run") || trace__has(q->trace, "sched_off");
	map__init(&a->threads, sizeof(struct thread_key), sizeof(struct activity_thread));
	map__init(&a->quotas, sizeof(u32), sizeof(struct span_list));
	cpu_sums__init(&a->cpus, q->facts && q->facts->head ? q->facts->head->cpus : 0);
	err = lock_futexes__load(&a->locks, q->trace);
	if (!err && flags & ACTIVITY_DETAILS)
		err = osrt_files__new(&a->files, q);
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
	cpu_sums__free(&a->cpus);
	gil_model__free(a->gil);
	waits__free(a->waits);
	osrt_files__free(a->files);
	lock_futexes__free(a->locks);
	free(a);
}

const char *activity__name(const struct activity *a, u32 reason)
{
	return reason < ACTIVITY_CAUSE_BASE ? waits__reason(a->waits, reason) :
					      activity_cause__text(reason - ACTIVITY_CAUSE_BASE);
}

const struct osrt_files *activity__files(const struct activity *a)
{
	return a->files;
}

enum activity_cause activity__cause(const struct activity *a, u32 reason)
{
	return reason < ACTIVITY_CAUSE_BASE ? waits__cause(a->waits, reason) : reason - ACTIVITY_CAUSE_BASE;
}

const struct event_meaning *activity__meaning(const struct activity *a, u32 reason)
{
	return reason < ACTIVITY_CAUSE_BASE ? waits__meaning(a->waits, reason) : NULL;
}

const struct cpu_sums *activity__cpus(const struct activity *a)
{
	return &a->cpus;
}

const struct lock_futexes *activity__futexes(const struct activity *a)
{
	return a->locks;
}

/* The part of a thread's time that is being cut into intervals. */
struct cutting {
	struct activity *a;
	struct activity_thread *thread; /* NULL: the thread was not loaded */
	struct thread_waits *waits; /* NULL: the thread has no recorded waits */
	const struct span_list *quota; /* NULL: no quota throttled its process */
	struct activity_interval now;
	const struct sched_time *off_cpu; /* the off-CPU span at the current time; NULL: on a CPU, or unknown */
	bool is_delay; /* runnable after a wait, and `call` is asked for */
	u64 span_from;
	int (*fn)(const struct activity_interval *i, void *arg);
	void *arg;
};

static int emit(struct cutting *c, u64 from, u64 to)
{
	struct activity_thread *t = c->thread;
	struct activity_interval *i = &c->now;

	if (from >= to)
		return 0;
	i->from = from;
	i->to = to;
	i->is_first_part = !t || t->span_from != c->span_from || t->last_reason != i->reason;
	if (t) {
		t->span_from = c->span_from;
		t->last_reason = i->reason;
	}
	return c->fn(i, c->arg);
}

/* Returns why [from, to) is unknown. A record has the time of its span's end: a missing one was lost in (from, to]. */
static enum activity_cause unknown_cause(const struct activity *a, u64 from, u64 to)
{
	u32 i = span_list__find(&a->lost, from + 1);

	if (!a->has_sched || (a->q.facts && trace_facts__is_unmeasured(a->q.facts, from, to)))
		return ACTIVITY_NOT_RECORDED;
	return i < a->lost.n && a->lost.spans[i].from <= to ? ACTIVITY_LOST : ACTIVITY_UNOBSERVED;
}

/* The time of the wake-up decides, so that one wait for a CPU has one cause. */
static enum activity_cause runnable_cause(const struct cutting *c)
{
	u64 until = ~0ull;

	return c->quota && c->off_cpu && span_list__at(c->quota, c->off_cpu->wake, &until) ? ACTIVITY_QUOTA :
											     ACTIVITY_CPU;
}

/* Returns the cause of a thread that is in no recorded call. */
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
		return c->off_cpu->state == SCHED_SLEEP	  ? ACTIVITY_ASLEEP :
		       c->off_cpu->state == SCHED_BLOCKED ? ACTIVITY_UNINTERRUPTIBLE :
		       c->off_cpu->state == SCHED_TRACED  ? ACTIVITY_TRACED :
		       c->off_cpu->state == SCHED_FROZEN  ? ACTIVITY_FROZEN :
							    ACTIVITY_STOPPED;
	}
}

/*
 * Is the thread stopped, or runnable after that? A tracer such as strace stops it within a call, which is not what it
 * waits for.
 */
static bool is_stopped(const struct cutting *c)
{
	return c->off_cpu && (c->off_cpu->state == SCHED_STOPPED || c->off_cpu->state == SCHED_TRACED ||
			      c->off_cpu->state == SCHED_FROZEN);
}

/* Of the wait that the stop interrupted only the stack remains. */
static void add_stopper(struct activity_interval *i, const struct sched_time *off_cpu)
{
	bool is_tracer = i->cause == ACTIVITY_TRACED && off_cpu->stopper;

	i->object = i->cause == ACTIVITY_STOPPED ? off_cpu->stopper : 0;
	i->caused_by = is_tracer ? (struct thread_key){ off_cpu->stopper, off_cpu->stopper } : i->waker;
	i->caused_by_stack = 0;
}

/*
 * A packet to this machine is delivered in a softirq of the call that sends it. Returns the thread that was on the CPU
 * if it is of the process at the socket's other end, or of a child of it, which inherited the socket.
 */
static struct thread_key sender_of(const struct cutting *c, u64 object)
{
	const struct names *names = c->a->q.names;
	struct thread_key sender = c->off_cpu ? c->off_cpu->current : (struct thread_key){ 0 };
	const struct osrt_file *file = sender.tid ? osrt_files__find(c->a->files, c->now.thread.pid, (u32)object) :
						    NULL;
	const struct task *task;

	if (!file || file->kind != SYSCALL_FILE_SOCKET || !file->peer)
		return (struct thread_key){ 0 };
	task = names__task(names, sender.pid, 0);
	if (names__number(names, sender.pid) == names__number(names, file->peer) ||
	    (task && names__number(names, task->ppid) == names__number(names, file->peer)))
		return sender;
	return (struct thread_key){ 0 };
}

static void add_detail(struct cutting *c, const struct wait_detail *d)
{
	struct activity_interval *i = &c->now;

	i->object = d ? d->object : 0;
	i->stack = d ? d->stack : 0;
	i->caused_by = d && d->by_tid ? (struct thread_key){ d->by_pid, d->by_tid } : i->waker;
	if (i->state == ACTIVITY_BLOCKED && !i->caused_by.tid && i->object)
		i->caused_by = sender_of(c, i->object);
	i->caused_by_stack = d ? d->by_stack : 0;
	i->is_free = false;
	if (i->state == ACTIVITY_BLOCKED && is_stopped(c))
		add_stopper(i, c->off_cpu);
}

/* The time line of GIL holders is preferred: the wait's own event has only the holder at the wait's end. */
static void add_holder(struct cutting *c, const struct listed_span *gil)
{
	c->now.is_free = gil->kind == GIL_FREE;
	c->now.caused_by = gil->kind == GIL_HELD ? (struct thread_key){ c->now.thread.pid, gil->thread } :
						   (struct thread_key){ 0 };
	c->now.caused_by_stack = gil->kind == GIL_HELD ? gil->detail : 0;
}

/* Cuts a part where the GIL's holder or the stack changes, and emits each interval with its details. */
static int emit_with_details(struct cutting *c, const struct wait_detail *d, u64 from, u64 to)
{
	const struct listed_span *gil = NULL, *stack;
	int err = 0;

	if (!c->thread)
		return emit(c, from, to);
	for (u64 until; !err && from < to; from = until) {
		until = to;
		add_detail(c, d);
		if (c->now.cause == ACTIVITY_GIL)
			gil = span_list__next(&c->thread->gil, from, &until);
		if (gil)
			add_holder(c, gil);
		stack = c->now.state != ACTIVITY_RUNNING ? span_list__next(&c->thread->off_stacks, from, &until) : NULL;
		c->now.off_stack = stack ? stack->detail : 0;
		err = emit(c, from, until);
	}
	return err;
}

static int on_part(const struct wait_part *p, void *arg)
{
	struct cutting *c = arg;

	c->now.reason = p->reason && !c->is_delay && !is_stopped(c) ?
				p->reason :
				ACTIVITY_CAUSE_BASE + plain_cause(c, p->from, p->to);
	c->now.cause = activity__cause(c->a, c->now.reason);
	c->now.call = c->is_delay && !is_stopped(c) && c->now.cause == ACTIVITY_CPU ? p->reason : 0;
	if (c->a->flags & ACTIVITY_DETAILS)
		return emit_with_details(c, p->detail, p->from, p->to);
	return emit(c, p->from, p->to);
}

/* Returns the span at `time` or NULL; lowers *until to where that changes. Times must not decrease between calls. */
static const struct sched_time *span_at(struct sched_times *l, u64 time, u64 *until)
{
	const struct sched_time *s;
	u64 change;

	while (l->current < l->n && l->spans[l->current].to <= time)
		l->current++;
	if (l->current == l->n)
		return NULL;
	s = &l->spans[l->current];
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
		on = span_at(&c->thread->on_cpu, time, until);
	c->off_cpu = c->thread && !on ? span_at(&c->thread->off_cpu, time, until) : NULL;
	c->span_from = on ? on->from : c->off_cpu ? c->off_cpu->from : 0;
	i->state = on ? ACTIVITY_RUNNING : ACTIVITY_UNKNOWN;
	i->waker = (struct thread_key){ 0, 0 };
	i->uninterruptible = false;
	if (!c->off_cpu)
		return;
	i->state = time < c->off_cpu->wake ? ACTIVITY_BLOCKED : ACTIVITY_RUNNABLE;
	i->uninterruptible = c->off_cpu->state == SCHED_BLOCKED;
	if (i->state == ACTIVITY_RUNNABLE)
		return;
	*until = c->off_cpu->wake < *until ? c->off_cpu->wake : *until;
	i->waker = c->off_cpu->waker;
}

/* Did the thread block before it became runnable? The call that it blocked in is still open. */
static bool is_delay(const struct cutting *c)
{
	u32 flags = c->a->flags & (ACTIVITY_DETAILS | ACTIVITY_IN_CALLS);

	return c->now.state == ACTIVITY_RUNNABLE && flags == ACTIVITY_DETAILS && c->off_cpu->wake > c->off_cpu->from;
}

static int cut_interval(struct cutting *c, u64 from, u64 to)
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
		c->is_delay = is_delay(c);
		if (c->now.state == ACTIVITY_BLOCKED || c->is_delay || (c->a->flags & ACTIVITY_IN_CALLS))
			err = waits__explain(c->a->waits, c->waits, c->now.uninterruptible, from, until, on_part, c);
		else
			err = on_part(&part, c);
	}
	return err;
}

/*
 * Returns the part of a thread's life that lies in `all`. Spans beyond the recorded start and end of its life extend
 * it.
 */
static struct trace_window life_of(const struct activity *a, const struct thread_key *key,
				   const struct activity_thread *t, struct trace_window all)
{
	const struct task *task = names__task(a->q.names, key->pid, key->tid);
	struct trace_window w = all;
	const struct sched_times *lists[] = { &t->on_cpu, &t->off_cpu };

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

/* Emits the loaded intervals of one thread, and the unknown time before its first window. */
static int emit_thread(struct cutting *c, struct trace_window all)
{
	struct activity_thread *t = c->thread;
	struct trace_window life = life_of(c->a, &c->now.thread, t, all);
	u64 from = t->emitted_until ? t->emitted_until : life.from, to = life.to < c->a->q.to ? life.to : c->a->q.to;
	u64 known = from < c->a->q.from ? c->a->q.from : from;
	struct wait_part before = { .from = from, .to = known };
	int err = 0;

	t->ended = life.to <= c->a->q.from;
	if (known >= to)
		return 0;
	c->now.state = ACTIVITY_UNKNOWN;
	c->is_delay = false;
	c->off_cpu = NULL;
	c->span_from = 0;
	if (from < known)
		err = on_part(&before, c);
	t->emitted_until = to;
	return err ? err : cut_interval(c, known, to);
}

/*
 * Returns how many windows to read, as if events were evenly distributed. The number is bounded because each window
 * reads all chunks that overlap it and visits each thread.
 */
static u32 windows(const struct trace_summary *t, const struct trace_window *all)
{
	double part = (double)(all->to - all->from) / ((double)(t->last - t->first) + 1);
	double n = part * (double)t->events / activity_window + 1;

	return n < activity_windows_max ? (u32)n : activity_windows_max;
}

u32 activity__windows(const struct activity *a, struct trace_window *all)
{
	const struct trace_summary *t = trace__summary(a->q.trace);

	all->from = a->selected->from > t->first ? a->selected->from : t->first;
	all->to = a->selected->to && a->selected->to <= t->last ? a->selected->to : t->last + (t->last < ~0ull);
	return all->to > all->from ? windows(t, all) : 0;
}

/* Frees what was loaded, and forgets which threads were added. */
static void unload(struct activity *a)
{
	activity__remove_threads(a);
	waits__choose(a->waits, NULL);
	waits__forget(a->waits);
	gil_model__free(a->gil);
	a->gil = NULL;
	a->chosen = false;
}

int activity__read(struct activity *a, int (*fn)(const struct activity_interval *i, void *arg), void *arg)
{
	struct trace_window all;
	u32 n = activity__windows(a, &all);
	u64 step = n ? (all.to - all.from) / n + 1 : 0;
	int err = 0;

	unload(a);
	for (u64 at = all.from, end; !err && at < all.to; at = end) {
		end = trace_window__step_end(at, step, all.to);
		err = activity__load(a, at, end);
		for (u32 i = 0; !err && i < a->threads.n; i++) {
			struct cutting c = { .a = a, .thread = map__value(&a->threads, i), .fn = fn, .arg = arg };

			if (c.thread->ended && !c.thread->on_cpu.n && !c.thread->off_cpu.n)
				continue;
			c.now.thread = *(const struct thread_key *)map__key(&a->threads, i);
			err = emit_thread(&c, all);
		}
	}
	unload(a);
	a->flags &= ~(u32)ACTIVITY_CPUS;
	return err;
}

void activity__remove_threads(struct activity *a)
{
	for (u32 i = 0; i < a->threads.n; i++)
		activity_thread__forget(map__value(&a->threads, i));
	map__free(&a->threads);
	a->chosen = true;
}

int activity__add_thread(struct activity *a, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };
	u32 before = a->threads.n;

	a->chosen = true;
	waits__choose(a->waits, &a->threads);
	if (!map__get(&a->threads, &key))
		return -ENOMEM;
	/* the segments that the GIL's model has emitted so far lack this thread's */
	if (a->threads.n != before)
		a->gil_to = 0;
	return 0;
}

/* Moves to the first span that ends after `time`. */
static void seek(struct sched_times *l, u64 time)
{
	l->current = SEARCH(l->n, i, l->spans[i].to <= time);
}

int activity__of(struct activity *a, u32 pid, u32 tid, u64 from, u64 to,
		 int (*fn)(const struct activity_interval *i, void *arg), void *arg)
{
	struct cutting c = { .a = a, .now.thread = { pid, tid }, .fn = fn, .arg = arg };

	c.thread = map__find(&a->threads, &c.now.thread);
	if (c.thread) {
		seek(&c.thread->on_cpu, from);
		seek(&c.thread->off_cpu, from);
	}
	return cut_interval(&c, from, to);
}
