// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/explainer.h"

#include <errno.h>
#include <stdlib.h>

/* A thread that polls and then reads within this time (ns) has waited for the data that it reads. */
#define POLL_THEN_READ 1000000ull

struct explainer {
	struct query args; /* of the window */
	struct activity *activity;
	struct explainer_sources sources;
};

int explainer__new(struct explainer **out, const struct query *args, struct gpu_gaps *gaps)
{
	struct explainer *d = calloc(1, sizeof(*d));
	int err;

	*out = d;
	if (!d)
		return -ENOMEM;
	d->args = *args;
	/* a device may wait for other threads than the selected one */
	d->args.tids.n = 0;
	d->sources.args = &d->args;
	d->sources.gaps = gaps;
	map__init(&d->sources.threads, sizeof(struct thread_key), sizeof(struct explainer_thread));
	err = activity__new(&d->activity, &d->args, ACTIVITY_IN_CALLS | ACTIVITY_DETAILS | ACTIVITY_HOLDERS);
	if (!err)
		err = stacks__load(&d->sources.stacks, args->trace);
	d->sources.files = d->activity ? activity__files(d->activity) : NULL;
	return err;
}

void explainer__free(struct explainer *d)
{
	if (!d)
		return;
	for (u32 i = 0; i < d->sources.threads.n; i++)
		for (u32 k = 0; k < EXPLAINER_SOURCES; k++)
			span_list__free(&((struct explainer_thread *)map__value(&d->sources.threads, i))->lists[k]);
	map__free(&d->sources.threads);
	stacks__free(d->sources.stacks);
	activity__free(d->activity);
	free(d);
}

int explainer__add_thread(struct explainer *d, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };

	return map__get(&d->sources.threads, &key) ? activity__add_thread(d->activity, pid, tid) : -ENOMEM;
}

int explainer__load(struct explainer *d, u64 from, u64 to)
{
	int err = activity__load(d->activity, from, to);

	d->args.from = from;
	d->args.to = to;
	return err ? err : explainer_sources__read(&d->sources);
}

/* The thread that is being explained */
struct explaining {
	struct explainer *d;
	const struct explainer_thread *thread; /* NULL: the thread was not added */
	const struct explainer_hint *hint;
	int (*fn)(enum gap_cause cause, u32 object, u64 ns, void *arg);
	void *arg;
};

static int emit(const struct explaining *t, enum gap_cause cause, u32 object, u64 from, u64 to)
{
	return from < to ? t->fn(cause, object, to - from, t->arg) : 0;
}

static int emit_text(const struct explaining *t, enum gap_cause cause, const char *text, u64 from, u64 to)
{
	u32 object = texts__number(&t->d->sources.gaps->texts, text);

	return object ? emit(t, cause, object, from, to) : -ENOMEM;
}

static int emit_gil(const struct explaining *t, const struct activity_interval *i)
{
	u32 kind, object = 0;
	char label[64];

	if (i->is_free)
		return emit_text(t, GAP_GIL, "no thread (the woken thread was not running yet)", i->from, i->to);
	if (i->caused_by_stack)
		object = explainer_sources__function(&t->d->sources, i->caused_by_stack, &kind);
	if (!object && i->caused_by.tid)
		object = texts__number(&t->d->sources.gaps->texts, names__label(t->d->args.names, label, sizeof(label),
										i->caused_by.pid, i->caused_by.tid));
	return emit(t, GAP_GIL, object, i->from, i->to);
}

/* Returns the sample that represents a moment: the next one, else the previous one, if within the time of the hint. */
static const struct listed_span *sample_at(const struct explaining *t, u64 time, u64 *until)
{
	const struct span_list *l = &t->thread->lists[EXPLAINER_SAMPLES];
	u32 i = span_list__find(l, time);

	if (i < l->n && l->spans[i].to <= t->hint->to) {
		*until = l->spans[i].to < *until ? l->spans[i].to : *until;
		return &l->spans[i];
	}
	return i && l->spans[i - 1].to > t->hint->from ? &l->spans[i - 1] : NULL;
}

static int emit_running(const struct explaining *t, u64 from, u64 to)
{
	struct gpu_gaps *gaps = t->d->sources.gaps;
	u32 kind = 0, object = 0;
	int err = 0;

	if (t->hint->call)
		return emit_text(t, GAP_CUDA, t->hint->call, from, to);
	for (u64 until; !err && from < to; from = until) {
		const struct listed_span *s;

		until = to;
		s = sample_at(t, from, &until);
		if (s) {
			kind = s->kind;
			object = s->detail;
		} else {
			object = explainer_sources__function(&t->d->sources, t->hint->stack, &kind);
			gaps->guessed = gaps->guessed || object;
		}
		err = emit(t, kind & EXPLAINER_PYTHON ? GAP_PYTHON : GAP_RUN, object, from, until);
	}
	return err;
}

/* Without scheduler spans: each sample represents some CPU time before it, and the rest is unknown. */
static int emit_unknown(const struct explaining *t, u64 from, u64 to)
{
	int err = 0;

	if (t->hint->call)
		return emit_text(t, GAP_CUDA, t->hint->call, from, to);
	for (u64 until; !err && from < to; from = until) {
		const struct listed_span *s;

		until = to;
		s = span_list__at(&t->thread->lists[EXPLAINER_SAMPLES], from, &until);
		if (s)
			err = emit(t, s->kind & EXPLAINER_PYTHON ? GAP_PYTHON : GAP_RUN, s->detail, from, until);
		else
			err = emit(t, GAP_UNKNOWN, 0, from, until);
	}
	return err;
}

/* Returns the read that follows the i-th call, a poll, so closely that the poll waited for its file. NULL: none. */
static const struct listed_span *read_after(const struct span_list *l, u32 i)
{
	for (u64 end = l->spans[i].to; i + 1 < l->n && l->spans[i + 1].from < end + POLL_THEN_READ; i++)
		if (l->spans[i + 1].kind == EXPLAINER_READS)
			return &l->spans[i + 1];
	return NULL;
}

static int emit_call(const struct explaining *t, const struct activity_interval *i)
{
	const struct span_list *l = &t->thread->lists[EXPLAINER_CALLS];
	const char *name = activity__name(t->d->activity, i->reason);
	u32 n = span_list__find(l, i->from);
	const struct listed_span *s = n < l->n && l->spans[n].from <= i->from ? &l->spans[n] : NULL;

	if (s && s->kind == EXPLAINER_POLLS)
		s = read_after(l, n) ? read_after(l, n) : s;
	if (s)
		return emit(t, s->kind == EXPLAINER_READS ? GAP_READ : GAP_CALL, s->detail, i->from, i->to);
	if (i->cause == ACTIVITY_SLEEP)
		return emit_text(t, GAP_SLEEP, name, i->from, i->to);
	if (i->cause == ACTIVITY_FUTEX)
		return emit_text(t, GAP_LOCK, "a lock or a condition", i->from, i->to);
	return emit_text(t, GAP_CALL, name, i->from, i->to);
}

/* Emits an off-CPU interval by its stack; with loader_only only if a DataLoader is on the stack. */
static int emit_off(const struct explaining *t, const struct activity_interval *i, bool loader_only, bool *emitted)
{
	u32 kind = 0, object = i->off_stack ? explainer_sources__function(&t->d->sources, i->off_stack, &kind) : 0;

	*emitted = !loader_only || kind & EXPLAINER_LOADER;
	return *emitted ? emit(t, kind & EXPLAINER_LOADER ? GAP_READ : GAP_OFF, object, i->from, i->to) : 0;
}

/* Emits an interval in a call or wait. A thread that is runnable waits for a CPU regardless of its call. */
static int emit_wait(const struct explaining *t, const struct activity_interval *i)
{
	const char *name = activity__name(t->d->activity, i->reason);
	bool emitted = false;
	int err;

	if (i->state == ACTIVITY_RUNNABLE)
		return emit(t, GAP_CPU, 0, i->from, i->to);
	switch (i->cause) {
	case ACTIVITY_DISK:
	case ACTIVITY_FAULT:
	case ACTIVITY_RECLAIM:
		return emit_text(t, GAP_DISK, name, i->from, i->to);
	case ACTIVITY_CONNECT:
		return emit_text(t, GAP_CALL, name, i->from, i->to);
	default:
		break;
	}
	err = emit_off(t, i, true, &emitted);
	if (emitted)
		return err;
	if (i->cause == ACTIVITY_LOCK || i->cause == ACTIVITY_CONDITION)
		return emit_text(t, GAP_LOCK, i->cause == ACTIVITY_LOCK ? "a lock" : "a condition or another thread",
				 i->from, i->to);
	return emit_call(t, i);
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	const struct explaining *t = arg;
	const char *name = activity__name(t->d->activity, i->reason);
	bool emitted;

	switch (i->cause) {
	case ACTIVITY_ON_CPU:
		return emit_running(t, i->from, i->to);
	case ACTIVITY_CPU:
	case ACTIVITY_QUOTA:
		return emit(t, GAP_CPU, 0, i->from, i->to);
	case ACTIVITY_ASLEEP:
	case ACTIVITY_UNINTERRUPTIBLE:
	case ACTIVITY_STOPPED:
	case ACTIVITY_TRACED:
	case ACTIVITY_FROZEN:
		return emit_off(t, i, false, &emitted);
	case ACTIVITY_NOT_RECORDED:
	case ACTIVITY_LOST:
	case ACTIVITY_UNOBSERVED:
		return emit_unknown(t, i->from, i->to);
	case ACTIVITY_GIL:
		return emit_gil(t, i);
	case ACTIVITY_NCCL:
		return emit_text(t, GAP_NCCL, name, i->from, i->to);
	case ACTIVITY_GC:
		return emit(t, GAP_GC, 0, i->from, i->to);
	case ACTIVITY_LIBRARY:
		return emit_text(t, GAP_LIBRARY, name, i->from, i->to);
	case ACTIVITY_CUDA:
		return emit_text(t, GAP_CUDA, name, i->from, i->to);
	case ACTIVITY_CUDA_SYNC:
		return emit_text(t, GAP_SYNC, name, i->from, i->to);
	default:
		return emit_wait(t, i);
	}
}

int explainer__explain(struct explainer *d, u32 pid, u32 tid, u64 from, u64 to, const struct explainer_hint *hint,
		       int (*fn)(enum gap_cause cause, u32 object, u64 ns, void *arg), void *arg)
{
	struct explaining t = { d, explainer_sources__thread(&d->sources, pid, tid), hint, fn, arg };

	if (!t.thread)
		return from < to ? fn(GAP_UNKNOWN, 0, to - from, arg) : 0;
	return activity__of(d->activity, pid, tid, from, to, on_interval, &t);
}
