// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/stretches.h"

#include <errno.h>
#include <stdlib.h>

#include "model/sched_span.h"

/* Events of the trace for each window: their spans take some 40 bytes each in memory. */
#define WINDOW_EVENTS (4u << 20)

struct stretches {
	struct query args; /* of the window that is being read */
	struct query asked;
	struct lock_words *locks;
	struct waits *waits;
	int (*fn)(const struct stretch *stretch, void *arg);
	void *arg;
	struct stretch now; /* the one that is being made */
	u64 first; /* where the first window begins */
	u32 unknown; /* its reason if there is no better */
	u32 last; /* the wait's last reason so far */
	bool resumed; /* the wait began in the window before, which counted it */
};

int stretches__new(struct stretches **out, const struct query *args)
{
	struct stretches *s = calloc(1, sizeof(*s));
	int err;

	*out = s;
	if (!s)
		return -ENOMEM;
	s->args = s->asked = *args;
	err = lock_words__load(&s->locks, args->trace);
	return err ? err : waits__new(&s->waits, trace__schema(args->trace), args->names, s->locks);
}

void stretches__free(struct stretches *s)
{
	if (!s)
		return;
	waits__free(s->waits);
	lock_words__free(s->locks);
	free(s);
}

const char *stretches__what(const struct stretches *s, u32 what)
{
	switch (what) {
	case STRETCH_WANTED:
		return "wanted a CPU";
	case STRETCH_SLEEP:
		return "asleep (not recorded in what)";
	case STRETCH_BLOCKED:
		return "uninterruptible (not recorded in what)";
	case STRETCH_OTHER:
		return "stopped";
	default:
		return waits__reason(s->waits, what);
	}
}

char stretches__mark(const struct stretches *s, u32 what)
{
	switch (what) {
	case STRETCH_WANTED:
		return 'w';
	case STRETCH_SLEEP:
	case STRETCH_OTHER:
		return '.';
	case STRETCH_BLOCKED:
		return 'd';
	default:
		return waits__mark(s->waits, what);
	}
}

static int hand_over(struct stretches *s, u32 what, u64 from, u64 to)
{
	u64 first = s->args.from, last = s->args.to;

	s->now.what = what;
	s->now.from = from < first ? first : from;
	s->now.to = to > last ? last : to;
	return s->now.from < s->now.to ? s->fn(&s->now, s->arg) : 0;
}

static int on_explained(u32 reason, u64 from, u64 to, void *arg)
{
	struct stretches *s = arg;
	u32 what = reason ? reason : s->unknown;

	s->now.new = what != s->last && !s->resumed;
	s->resumed = false;
	s->last = what;
	return hand_over(s, what, from, to);
}

/* [start, wake) the thread waited for something, [wake, end) for a CPU. */
static int on_off(struct stretches *s, const struct sched_span *off)
{
	u64 from = off->start;
	int err = 0;

	s->now.waker = (struct thread_key){ off->waker_pid, off->waker_tid };
	s->now.blocked = off->state == SPAN_BLOCKED;
	s->unknown = off->state == SPAN_SLEEP ? STRETCH_SLEEP : s->now.blocked ? STRETCH_BLOCKED : STRETCH_OTHER;
	s->last = 0;
	s->resumed = from < s->args.from && s->args.from > s->first;
	/* explaining what lies outside of the window would find nothing */
	if (from < s->args.from)
		from = s->args.from;
	if (from < off->wake)
		err = waits__explain(s->waits, off->pid, off->tid, s->now.blocked, from,
				     off->wake < s->args.to ? off->wake : s->args.to, on_explained, s);
	s->now.new = off->wake >= s->args.from || s->args.from == s->first;
	s->now.blocked = false;
	s->now.waker = (struct thread_key){ 0, 0 };
	return err ? err : hand_over(s, STRETCH_WANTED, off->wake, off->end);
}

static int on_span(const struct sched_span *span, void *arg)
{
	struct stretches *s = arg;

	s->now.thread = (struct thread_key){ span->pid, span->tid };
	if (!span->on_cpu)
		return on_off(s, span);
	s->now.waker = (struct thread_key){ 0, 0 };
	s->now.blocked = false;
	s->now.new = span->start >= s->args.from || s->args.from == s->first;
	return hand_over(s, STRETCH_RUN, span->start, span->end);
}

static int feed(const struct rows *rows, void *arg)
{
	return waits__feed(((struct stretches *)arg)->waits, rows);
}

static int read_window(struct stretches *s)
{
	int err = 0;

	waits__forget(s->waits);
	if (*waits__kinds(s->waits))
		err = query__read(&s->args, waits__kinds(s->waits), feed, s);
	return err ? err : sched_spans__read(&s->args, SPAN_WHY | SPAN_WAKER, on_span, s);
}

int stretches__read(struct stretches *s, int (*fn)(const struct stretch *stretch, void *arg), void *arg)
{
	const struct trace_summary *t = trace__summary(s->asked.trace);
	u64 first = s->asked.from > t->first ? s->asked.from : t->first;
	u64 last = s->asked.to && s->asked.to <= t->last ? s->asked.to : t->last + 1;
	u64 step;
	int err = 0;

	if (last <= first)
		return 0;
	s->fn = fn;
	s->arg = arg;
	s->first = first;
	step = (last - first) / (t->events / WINDOW_EVENTS + 1) + 1;
	for (u64 at = first; !err && at < last; at += step) {
		s->args.from = at;
		s->args.to = at + step < last ? at + step : last;
		err = read_window(s);
	}
	return err;
}
