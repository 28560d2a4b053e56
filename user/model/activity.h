/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each thread did with its time: the one model that reports and findings read.
 *
 * The time of a thread is cut into intervals, each of one state and one cause. The contract:
 *
 *	Unit	ns of CLOCK_MONOTONIC; an interval is [from, to), from < to.
 *	Tiling	The intervals of a thread do not overlap and leave no gap: they sum to the time of its life that lies in the
 *		selected time. Time without a scheduler event of the thread is ACTIVITY_UNKNOWN, with the reason as its
 *		cause. Life begins and ends as names__task has it, with the recording where that is not known.
 *	Order	activity__read hands over the intervals of a thread in order of time. It reads the trace in windows; those
 *		of one window arrive thread by thread, and windows in order of time. The time before a thread's first window
 *		comes with that window.
 *	Bounds	Memory for the spans of one window, some 40 bytes each, and a few words for each thread of the trace and each
 *		second in which a quota throttled a process. Windows are equally long: one has activity_window events, if
 *		these come evenly, and more in a trace that would need more than activity_windows_max. A wait that began
 *		in an earlier window is the same wait (`begins` is false).
 *	Threads Those with scheduler events; with ACTIVITY_IN_CALLS those of any other span, too.
 *
 * Where several spans of families are open at a time, model/waits.h says which one counts.
 */
#ifndef SONDE_MODEL_ACTIVITY_H
#define SONDE_MODEL_ACTIVITY_H

#include "model/query.h"
#include "model/waits.h"

enum activity_state {
	ACTIVITY_RUNNING,
	ACTIVITY_RUNNABLE,
	ACTIVITY_BLOCKED,
	ACTIVITY_UNKNOWN,
};

/* Numbers of `what` from here on are causes that need no name of a call. */
#define ACTIVITY_WHAT (1u << 30)

struct activity_interval {
	struct thread_key thread;
	u64 from, to; /* ns */
	enum activity_state state;
	enum activity_cause cause;
	/* activity__name: of the call or wait; the same number means the same cause and name. ACTIVITY_WHAT + cause: no call */
	u32 what;
	bool uninterruptible; /* blocked and not woken by signals: mostly in a disk's I/O */
	bool begins; /* of another `what` than the time before it in the same span of the scheduler */
	struct thread_key
		waker; /* the thread that ended the wait that a blocked interval is a part of; 0: none, or not known */
	/* With ACTIVITY_DETAILS, else 0 */
	u64 object; /* as in struct wait_detail */
	u32 stack; /* Python and native frames, while it was there; 0: none was recorded */
	u32 off_stack; /* the same, walked as it left the CPU (record --off-cpu) */
	/* The thread that held what it waited for, else the thread that ended the wait, with its stack; 0: not known */
	struct thread_key by;
	u32 by_stack;
	bool is_free; /* the GIL had no holder: the thread had been woken and was not running yet */
};

enum activity_flag {
	ACTIVITY_IN_CALLS =
		1, /* running, runnable and unknown intervals are cut by the calls that the thread is in, too */
	ACTIVITY_DETAILS = 2, /* objects, stacks and counterparts; waits for a GIL are cut by their holders */
};

struct activity;

/* q: of what follows, must outlive it. flags: enum activity_flag. 0 or negative errno; free in any case. */
int activity__new(struct activity **out, const struct query *q, u32 flags);
void activity__free(struct activity *a);

/* Calls fn for all intervals in the time, of the selected processes and threads. 0, fn's other result or negative errno. */
int activity__read(struct activity *a, int (*fn)(const struct activity_interval *i, void *arg), void *arg);

/*
 * In place of activity__read, for certain moments of certain threads: loads [from, to) of the threads that were added (of
 * all if none was), and forgets what was loaded before. 0 or negative errno.
 */
int activity__add_thread(struct activity *a, u32 pid, u32 tid);
int activity__load(struct activity *a, u64 from, u64 to);
/* Intervals that tile [from, to), which lies in what was loaded; all unknown for another thread. As activity__read. */
int activity__of(struct activity *a, u32 pid, u32 tid, u64 from, u64 to,
		 int (*fn)(const struct activity_interval *i, void *arg), void *arg);

/* "GIL", "cudaStreamSynchronize", "read", "waiting for a CPU"; lives as long as a. */
const char *activity__name(const struct activity *a, u32 what);
/* As the intervals of this `what` have it */
enum activity_cause activity__cause(const struct activity *a, u32 what);

/* Events of a trace for each window in which it is read; tests make it small. */
extern u32 activity_window, activity_windows_max;

#endif
