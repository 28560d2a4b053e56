/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which thread held the GIL while others waited for it.
 *
 * A GIL has one holder at a time. Events that identify it, in order of time:
 *
 *	drop	a thread dropped it (gil_drop, the end of a gil_hold): it held the GIL until then
 *	seen	a wait timed out: the thread that the event names held the GIL at that moment
 *	take	a wait found the GIL free at its end: the waiter holds it from then on
 *
 * The time before a drop or a `seen` is attributed to the thread that it names, with the stack that was walked there.
 * Between a drop and a take there is no holder. If what precedes a take is not a drop, the time between the two is
 * that of the thread that the take's wait names as dropper, or if there is none, of the holder before. With --gil=full
 * takings are recorded too, and no holder has to be inferred. Each wait is cut along this time line.
 */
#pragma once

#include "model/view.h"
#include "util/map.h"

struct gil_key {
	u64 gil; /* address of the GIL's condition: unique within its process */
	u32 pid;
	u32 unused;
};

enum gil_holding {
	GIL_UNKNOWN, /* the holder is not known */
	GIL_HELD,
	GIL_FREE, /* no holder: a waiter had been woken and was not running yet */
};

/*
 * A timed wait: a switch interval at most, and the time until the thread has a CPU again. An attempt to get the GIL may
 * have several of them.
 */
struct gil_timed_wait {
	struct gil_key gil;
	u32 tid, stack;
	u64 start, end; /* ns */
	s64 result; /* enum gil_wait_end */
	u32 waiters; /* number of waiting threads, with this one; 0: not known */
	bool first; /* the first wait of its attempt */
	double weight; /* how many waits it represents: more than 1 where only slices of time were measured */
};

/* A segment of a wait, in which one holder had the GIL. In order of time for each waiter. */
struct gil_segment {
	struct gil_key gil;
	enum gil_holding holding;
	u32 waiter, waiter_stack;
	u32 holder, holder_stack; /* thread and stack, 0: not known */
	u64 from, to; /* ns */
	u64 attempt; /* number of its attempt in the waiter's thread */
	/* ns from the start of the hold to `to`. If that start is not known: from the start of the waiter's attempt. */
	u64 hold_ns;
	bool estimated; /* one of the stacks was taken from another short wait or hold of the same thread */
	double weight;
};

/* A hold; recorded with --gil=full only. */
struct gil_held {
	struct gil_key gil;
	u32 tid, stack; /* stack 0: no thread was waiting when it was dropped, or not known */
	u64 start, end; /* ns */
	bool open; /* had not ended when the trace did */
	double weight;
};

/* How long a thread that had to drop the GIL waited until another one took it; recorded with --gil=full only. */
struct gil_switched {
	struct gil_key gil;
	u32 tid;
	u64 start, end;
	double weight;
};

/* Each function may be NULL and returns 0 or negative errno, which ends the reading. */
struct gil_listener {
	int (*on_wait)(const struct gil_timed_wait *w, void *arg);
	int (*on_segment)(const struct gil_segment *p, void *arg);
	int (*on_hold)(const struct gil_held *h, void *arg);
	int (*on_switch)(const struct gil_switched *s, void *arg);
	/* Called for each GIL at the end: weighted ns of the selected time in which at least one thread waited */
	int (*on_contended)(const struct gil_key *gil, double ns, void *arg);
};

/*
 * Reads the waits, drops and holds of [from, to) (to 0: no limit) of some processes (NULL: of all) and calls the
 * listener, also for those up to a second outside of this time: the listener has to select. *paused is how much of the
 * selected time was not measured, in ns; paused may be NULL. Memory is bounded. Returns 0 or a negative errno.
 */
int gil_model__read(struct trace *t, u64 from, u64 to, const struct trace_ids *pids,
		    const struct gil_listener *listener, void *arg, u64 *paused);

/*
 * As gil_model__read, for a reader that goes through the trace in windows: each event is read once, and after
 * gil_model__advance the listener has all segments of waits that ended before `to` (0: the trace's end), and some later
 * ones. on_contended is not called. The list in pids must live as long as the model. Call gil_model__free also if
 * gil_model__new failed.
 */
struct gil_model;
int gil_model__new(struct gil_model **out, struct trace *t, u64 from, u64 to, const struct trace_ids *pids,
		   const struct gil_listener *listener, void *arg);
int gil_model__advance(struct gil_model *m, u64 to);
void gil_model__free(struct gil_model *m);
