// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/stretches.h"

#include <errno.h>
#include <stdlib.h>

/* enum sched_state of bpf/probes/sched/sched.h; by number, as traces outlive headers */
enum { STATE_RUNNABLE = 0, STATE_SLEEP = 1, STATE_BLOCKED = 2, STATE_NEW = 9 };

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

struct off_fields {
	struct common_fields common;
	const struct schema_field *state, *wake, *waker_pid, *waker_tid;
};

/* [start, wake) the thread waited for something, [wake, end) for a CPU. */
static int on_off(struct stretches *s, const struct view *v, const struct off_fields *f)
{
	u64 start = (u64)view__s64(v, f->common.start), end = (u64)view__s64(v, f->common.time);
	u64 wake = (u64)view__s64(v, f->wake), from = start;
	s64 state = view__s64(v, f->state);
	bool slept = state != STATE_RUNNABLE && state != STATE_NEW;
	int err = 0;

	s->now.thread = (struct thread_key){ (u32)view__s64(v, f->common.pid), (u32)view__s64(v, f->common.tid) };
	s->now.waker = (struct thread_key){ (u32)view__s64(v, f->waker_pid), (u32)view__s64(v, f->waker_tid) };
	if (!wake)
		wake = slept ? end : start;
	wake = wake < start ? start : wake > end ? end : wake;
	s->unknown = state == STATE_SLEEP ? STRETCH_SLEEP : state == STATE_BLOCKED ? STRETCH_BLOCKED : STRETCH_OTHER;
	s->last = 0;
	s->resumed = from < s->args.from && s->args.from > s->first;
	s->now.blocked = state == STATE_BLOCKED;
	/* explaining what lies outside of the window would find nothing */
	if (from < s->args.from)
		from = s->args.from;
	if (from < wake)
		err = waits__explain(s->waits, s->now.thread.pid, s->now.thread.tid, state == STATE_BLOCKED, from,
				     wake < s->args.to ? wake : s->args.to, on_explained, s);
	s->now.new = wake >= s->args.from || s->args.from == s->first;
	s->now.blocked = false;
	s->now.waker = (struct thread_key){ 0, 0 };
	return err ? err : hand_over(s, STRETCH_WANTED, wake, end);
}

static int on_offs(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct off_fields f = {
		.common = common_fields__of(v.event),
		.state = schema_event__field(v.event, "state"),
		.wake = schema_event__field(v.event, "wake"),
		.waker_pid = schema_event__field(v.event, "waker_pid"),
		.waker_tid = schema_event__field(v.event, "waker_tid"),
	};
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_off(arg, &v, &f);
	return err;
}

static int on_runs(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct common_fields f = common_fields__of(v.event);
	struct stretches *s = arg;
	int err = 0;

	s->now.waker = (struct thread_key){ 0, 0 };
	s->now.blocked = false;
	for (; !err && v.i < rows__count(rows); v.i++) {
		s->now.thread = (struct thread_key){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		s->now.new = (u64)view__s64(&v, f.start) >= s->args.from || s->args.from == s->first;
		err = hand_over(s, STRETCH_RUN, (u64)view__s64(&v, f.start), (u64)view__s64(&v, f.time));
	}
	return err;
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
	if (!err)
		err = query__read_kind(&s->args, "sched_run", on_runs, s);
	return err ? err : query__read_kind(&s->args, "sched_off", on_offs, s);
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
