// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits of the current interval for disks, locks and peers, and time that CPU quotas withheld. A wait that ends in the
 * user's own code may cost time; which functions of libraries wait for something to do, the caller's rules decide.
 */
#include "model/live_private.h"

#include "probes/sample/sample.h"

#include <errno.h>
#include <sys/syscall.h>

/* ns; in a longer wait for a peer, the thread is idle: it waits for something to do. */
#define PEER_LONGEST 1000000000u

static struct site find_site(struct live *l, u32 id)
{
	struct site site = { .code = UNKNOWN };

	for (u32 depth = 0; id && depth < DEPTH_MAX; depth++) {
		const struct frame *frame = recent__find(&l->frames, &id);
		const struct code *c = frame ? recent__find(&l->codes, &frame->code) : NULL;

		if (!c)
			break;
		if (c->users && !c->package) {
			site.code = frame->code;
			break;
		}
		site.rule = c->rule ? c->rule : site.rule;
		site.lock = site.lock ? site.lock : c->lock;
		id = frame->caller;
	}
	return site;
}

/* Returns the site of a wait; NULL: no memory, or too many stacks in this interval. */
static const struct site *site_of(struct live *l, u32 stack)
{
	struct site *site = map__find(&l->sites, &stack);

	if (site || l->sites.n >= FUNCTIONS_MAX)
		return site;
	site = map__get(&l->sites, &stack);
	if (site)
		*site = find_site(l, stack);
	return site;
}

/* Returns what such a wait is for; LIVE_CPU: nothing that is known to cost time. */
static enum live_activity activity_of(enum sample_reason reason, s64 nr, bool in_call, u64 ns)
{
	switch (reason) {
	case SAMPLE_DISK:
	case SAMPLE_FAULT:
		return LIVE_DISK;
	case SAMPLE_LOCK:
		return LIVE_LOCK;
	case SAMPLE_IO:
		return ns <= PEER_LONGEST ? LIVE_PEER : LIVE_CPU;
	case SAMPLE_POLL:
		/* client libraries call poll(); select() and epoll_wait() mostly wait for something to do */
#ifdef SYS_poll
		if (in_call && nr == SYS_poll)
			return ns <= PEER_LONGEST ? LIVE_PEER : LIVE_CPU;
#endif
		return in_call && nr == SYS_ppoll && ns <= PEER_LONGEST ? LIVE_PEER : LIVE_CPU;
	default:
		return LIVE_CPU;
	}
}

/*
 * Adds the functions that held the lock, if the record of the wait's end came first, as it mostly does. The waker held
 * the lock from the end of its own wait on; before that, the function that it had waited for held it. In a convoy most
 * wakers have waited themselves.
 */
static int add_holders(struct live *l, struct time_key key, u64 since, u64 from, u64 to)
{
	struct wake_key wake = { .tid = key.tid, .since = since };
	const struct waker *w = map__find(&l->wakes, &wake);
	u32 before = UNKNOWN, last = UNKNOWN;
	u64 split = from;
	struct thread *t;
	int err = 0;

	w = w ? w : map__find(&l->old_wakes, &wake);
	t = w ? recent__find(&l->threads, &w->tid) : NULL;
	if (t && t->lock_end > from && t->lock_end < to && t->lock_ended_by != UNKNOWN) {
		split = t->lock_end;
		before = t->lock_ended_by;
	}
	if (w)
		last = live__user_code(l, w->stack);
	t = recent__get(&l->threads, &key.tid);
	if (!t)
		return -ENOMEM;
	t->lock_end = to;
	t->lock_ended_by = split - from > to - split ? before : last;
	key.tid = 0;
	key.ended_by = last;
	if (last != UNKNOWN)
		err = live__add_time(&l->off_cpu, key, to - split);
	key.ended_by = before;
	return err || before == UNKNOWN ? err : live__add_time(&l->off_cpu, key, split - from);
}

int live__on_off(struct live *l, const struct view *v)
{
	u32 tid = (u32)view__get(v, "tid"), stack = (u32)view__get(v, "stack");
	u64 start = (u64)view__get(v, "start"), to = (u64)view__get(v, "time"), from = start;
	struct time_key key = { .pid = (u32)view__get(v, "pid") };
	const struct site *site;
	int err;

	from = from < l->last_cut ? l->last_cut : from;
	if (from >= to)
		return 0;
	key.activity = activity_of((enum sample_reason)view__get(v, "reason"), view__get(v, "nr"),
				   view__get(v, "in_call"), to - start);
	if (key.activity == LIVE_CPU)
		return 0;
	live__use_stack(l, stack);
	site = key.activity == LIVE_DISK ? NULL : site_of(l, stack);
	if (key.activity != LIVE_DISK && (!site || site->code == UNKNOWN))
		return 0;
	key.rule = site ? site->rule : 0;
	key.lock = site ? site->lock : 0;
	key.code = site ? site->code : live__user_code(l, stack);
	err = live__add_time(&l->off_cpu, key, to - from);
	key.code = 0;
	key.tid = tid;
	if (!err)
		err = live__add_time(&l->off_cpu, key, to - from);
	return err || key.activity != LIVE_LOCK ? err : add_holders(l, key, start, from, to);
}

int live__on_wake(struct live *l, const struct view *v)
{
	struct wake_key key = { .tid = (u32)view__get(v, "woken_tid"), .since = (u64)view__get(v, "since") };
	struct waker *w, by = { (u32)view__get(v, "tid"), (u32)view__get(v, "stack") };

	if (!by.stack || l->wakes.n >= WAITS_MAX)
		return 0;
	live__use_stack(l, by.stack);
	w = map__get(&l->wakes, &key);
	if (w)
		*w = by;
	return w ? 0 : -ENOMEM;
}

int live__on_throttle(struct live *l, const struct view *v)
{
	struct throttle now = throttle__of(v);
	struct throttle *t = l->throttles.n < THREADS_MAX ? map__get(&l->throttles, &now.pid) : NULL;

	if (!t)
		return l->throttles.n < THREADS_MAX ? -ENOMEM : 0;
	/* of several cgroups above the process, the one that throttled it longest counts */
	if (now.throttled >= t->throttled)
		*t = now;
	return 0;
}
