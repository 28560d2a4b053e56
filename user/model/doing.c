// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/doing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/osrt_files.h"
#include "model/stretches.h"

/* Who polls and then reads has waited for what it reads. */
#define POLL_THEN_READ 1000000ull

struct doing {
	struct query args; /* of the window */
	struct lock_words *locks;
	struct waits *waits;
	struct doing_sources sources;
};

int doing__new(struct doing **out, const struct query *args, struct gpu_gaps *gaps)
{
	struct doing *d = calloc(1, sizeof(*d));
	int err;

	*out = d;
	if (!d)
		return -ENOMEM;
	d->args = *args;
	/* what a device waited for is another thread's doing too */
	d->args.tids.n = 0;
	d->sources.args = &d->args;
	d->sources.gaps = gaps;
	map__init(&d->sources.threads, sizeof(struct thread_key), sizeof(struct doing_thread));
	err = lock_words__load(&d->locks, args->trace);
	if (!err)
		err = waits__new(&d->waits, trace__schema(args->trace), args->names, d->locks);
	if (!err)
		err = stacks__load(&d->sources.stacks, args->trace);
	return err ? err : osrt_files__new(&d->sources.files, args);
}

void doing__free(struct doing *d)
{
	if (!d)
		return;
	for (u32 i = 0; i < d->sources.threads.n; i++)
		for (u32 k = 0; k < DOING_SOURCES; k++)
			free(((struct doing_thread *)map__value(&d->sources.threads, i))->lists[k].spans);
	map__free(&d->sources.threads);
	osrt_files__free(d->sources.files);
	stacks__free(d->sources.stacks);
	waits__free(d->waits);
	lock_words__free(d->locks);
	free(d);
}

int doing__add_thread(struct doing *d, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };

	return map__get(&d->sources.threads, &key) ? 0 : -ENOMEM;
}

static int feed(const struct rows *rows, void *arg)
{
	return waits__feed(((struct doing *)arg)->waits, rows);
}

int doing__load(struct doing *d, u64 from, u64 to)
{
	int err = 0;

	d->args.from = from;
	d->args.to = to;
	waits__forget(d->waits);
	if (*waits__kinds(d->waits))
		err = query__read(&d->args, waits__kinds(d->waits), feed, d);
	return err ? err : doing_sources__read(&d->sources);
}

/* The stretch that is being explained. */
struct telling {
	struct doing *d;
	u32 pid;
	const struct doing_thread *thread;
	enum doing_state state;
	const struct doing_hint *hint;
	int (*fn)(enum gap_cause cause, u32 of, u64 ns, void *arg);
	void *arg;
};

static int tell(const struct telling *t, enum gap_cause cause, u32 of, u64 from, u64 to)
{
	return from < to ? t->fn(cause, of, to - from, t->arg) : 0;
}

static int tell_text(const struct telling *t, enum gap_cause cause, const char *text, u64 from, u64 to)
{
	u32 of = texts__number(&t->d->sources.gaps->texts, text);

	return of ? tell(t, cause, of, from, to) : -ENOMEM;
}

/* Each part of it was for one holder. */
static int tell_gil(const struct telling *t, u64 from, u64 to)
{
	int err = 0;

	for (u64 until; !err && from < to; from = until) {
		const struct doing_span *s;

		until = to;
		s = doing_list__at(&t->thread->lists[DOING_GIL], from, &until);
		err = tell(t, GAP_GIL, s ? s->of : 0, from, until);
	}
	return err;
}

/* The sample that speaks for a moment: the next one, else the last one, of the time that the hint allows. */
static const struct doing_span *sample_at(const struct telling *t, u64 time, u64 *until)
{
	const struct doing_list *l = &t->thread->lists[DOING_SAMPLES];
	u32 i = doing_list__find(l, time);

	if (i < l->n && l->spans[i].to <= t->hint->to) {
		*until = l->spans[i].to < *until ? l->spans[i].to : *until;
		return &l->spans[i];
	}
	return i && l->spans[i - 1].to > t->hint->from ? &l->spans[i - 1] : NULL;
}

static int tell_running(const struct telling *t, u64 from, u64 to)
{
	struct gpu_gaps *gaps = t->d->sources.gaps;
	u32 what = 0, of = 0;
	int err = 0;

	if (t->hint->call)
		return tell_text(t, GAP_CUDA, t->hint->call, from, to);
	for (u64 until; !err && from < to; from = until) {
		const struct doing_span *s;

		until = to;
		s = sample_at(t, from, &until);
		if (s) {
			what = s->what;
			of = s->of;
		} else {
			of = doing_sources__function(&t->d->sources, t->hint->stack, &what);
			gaps->guessed = gaps->guessed || of;
		}
		err = tell(t, what & 1 ? GAP_PYTHON : GAP_RUN, of, from, until);
	}
	return err;
}

/* Without the scheduler's spans: each sample stands for some time on a CPU before it, the rest is not known. */
static int tell_unknown(const struct telling *t, u64 from, u64 to)
{
	int err = 0;

	if (t->hint->call)
		return tell_text(t, GAP_CUDA, t->hint->call, from, to);
	for (u64 until; !err && from < to; from = until) {
		const struct doing_span *s;

		until = to;
		s = doing_list__at(&t->thread->lists[DOING_SAMPLES], from, &until);
		if (s)
			err = tell(t, s->what & 1 ? GAP_PYTHON : GAP_RUN, s->of, from, until);
		else
			err = tell(t, GAP_UNKNOWN, 0, from, until);
	}
	return err;
}

/* In nothing that was recorded. */
static int tell_nothing(const struct telling *t, u64 from, u64 to)
{
	u64 until = to;
	const struct doing_span *s;

	switch (t->state) {
	case DOING_RUNS:
		return tell_running(t, from, to);
	case DOING_WANTS:
		return tell(t, GAP_CPU, 0, from, to);
	case DOING_UNKNOWN:
		return tell_unknown(t, from, to);
	default:
		s = doing_list__at(&t->thread->lists[DOING_OFF], from, &until);
		return tell(t, s && s->what & 2 ? GAP_READ : GAP_OFF, s ? s->of : 0, from, to);
	}
}

/* What a wait is for that comes before a read: the pipe or socket that the thread reads next. */
static const struct doing_span *read_after(const struct doing_list *l, u32 i)
{
	for (u64 end = l->spans[i].to; i + 1 < l->n && l->spans[i + 1].from < end + POLL_THEN_READ; i++)
		if (l->spans[i + 1].what == DOING_READS)
			return &l->spans[i + 1];
	return NULL;
}

static int tell_call(const struct telling *t, const char *name, u64 from, u64 to)
{
	const struct doing_list *l = &t->thread->lists[DOING_CALLS];
	u32 i = doing_list__find(l, from);
	const struct doing_span *s = i < l->n && l->spans[i].from <= from ? &l->spans[i] : NULL;

	if (s && s->what == DOING_POLLS)
		s = read_after(l, i) ? read_after(l, i) : s;
	if (s)
		return tell(t, s->what == DOING_READS ? GAP_READ : GAP_CALL, s->of, from, to);
	if (strstr(name, "nanosleep"))
		return tell_text(t, GAP_SLEEP, name, from, to);
	if (!strncmp(name, "futex", 5))
		return tell_text(t, GAP_LOCK, "a lock or a condition", from, to);
	return tell_text(t, GAP_CALL, name, from, to);
}

static int tell_library(const struct telling *t, const char *name, u64 from, u64 to)
{
	if (!strcmp(name, "garbage collection"))
		return tell(t, GAP_GC, 0, from, to);
	if (strncmp(name, "cu", 2))
		return tell_text(t, GAP_LIBRARY, name, from, to);
	return tell_text(t, strstr(name, "Synchronize") ? GAP_SYNC : GAP_CUDA, name, from, to);
}

/* In the middle of what a span of another family tells. */
static int on_reason(u32 reason, u64 from, u64 to, void *arg)
{
	const struct telling *t = arg;
	const char *name = waits__reason(t->d->waits, reason);
	char mark = reason ? waits__mark(t->d->waits, reason) : 0;
	u64 until = to;

	if (!reason)
		return tell_nothing(t, from, to);
	if (mark == 'g')
		return tell_gil(t, from, to);
	if (mark == 'n')
		return tell_text(t, GAP_NCCL, name, from, to);
	if (mark == 'c')
		return tell_library(t, name, from, to);
	/* what it waited for has come, a CPU has not */
	if (t->state == DOING_WANTS)
		return tell(t, GAP_CPU, 0, from, to);
	if (mark == 'd')
		return tell_text(t, GAP_DISK, name, from, to);
	if (t->state != DOING_RUNS) {
		const struct doing_span *s = doing_list__at(&t->thread->lists[DOING_OFF], from, &until);

		if (s && s->what & 2)
			return tell(t, GAP_READ, s->of, from, to);
	}
	if (mark == 'l')
		return tell_text(t, GAP_LOCK, strcmp(name, "lock") ? "a condition or another thread" : "a lock", from,
				 to);
	return tell_call(t, name, from, to);
}

int doing__explain(struct doing *d, u32 pid, u32 tid, u64 from, u64 to, const struct doing_hint *hint,
		   int (*fn)(enum gap_cause cause, u32 of, u64 ns, void *arg), void *arg)
{
	struct telling t = { d, pid, doing_sources__thread(&d->sources, pid, tid), 0, hint, fn, arg };
	int err = 0;

	if (!t.thread)
		return from < to ? fn(GAP_UNKNOWN, 0, to - from, arg) : 0;
	for (u64 until; !err && from < to; from = until) {
		const struct doing_span *s;

		until = to;
		s = doing_list__at(&t.thread->lists[DOING_SCHED], from, &until);
		t.state = s ? s->what : DOING_UNKNOWN;
		err = waits__explain(d->waits, pid, tid, t.state == DOING_BLOCKED, from, until, on_reason, &t);
	}
	return err;
}
