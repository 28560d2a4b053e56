/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each thread did with its time: the one model that reports and findings read.
 *
 * The time of a thread is cut into intervals, each of one state and one cause. The contract:
 *
 *	Unit	ns of CLOCK_MONOTONIC; an interval is [from, to), from < to.
 *	Tiling	The intervals of a thread do not overlap and leave no gap: they sum to the time of its life that lies in
 *		the selected time. Time without a scheduler event of the thread is ACTIVITY_UNKNOWN, with the reason as
 *		its cause. A life begins and ends as names__task reports it, or with the recording where that is not
 *		known.
 *	Order	activity__read emits the intervals of a thread in order of time. It reads the trace in windows; the
 *		intervals of one window arrive thread by thread, and windows in order of time. The time before a
 *		thread's first window comes with that window.
 *	Bounds	Memory for the spans of one window, some 40 bytes each, and a few words for each thread of the trace and
 *		each second in which a quota throttled a process. Windows are equally long, with activity_window events
 *		each on average, or more if there would be over activity_windows_max windows. A wait that continues from
 *		an earlier window is the same wait (`is_first_part` is false).
 *	Threads All with scheduler events; with ACTIVITY_IN_CALLS also all with other spans.
 *
 * Where several spans of families are open at a time, model/waits.h says which one counts.
 */
#pragma once

#include "model/query.h"
#include "model/waits.h"

enum activity_state {
	ACTIVITY_RUNNING,
	ACTIVITY_RUNNABLE,
	ACTIVITY_BLOCKED,
	ACTIVITY_UNKNOWN,
};

/* A `reason` of this number or more is ACTIVITY_CAUSE_BASE + enum activity_cause: no recorded call explains it. */
#define ACTIVITY_CAUSE_BASE (1u << 30)

struct activity_interval {
	struct thread_key thread;
	u64 from, to; /* ns */
	enum activity_state state;
	enum activity_cause cause;
	/* number of the call or wait, for activity__name; ACTIVITY_CAUSE_BASE + cause if there is none */
	u32 reason;
	bool uninterruptible; /* no signal ends the wait: mostly disk I/O. Of a runnable interval, the wait before it */
	bool is_first_part; /* a wait, run or call begins; false: one was cut at a holder, a stack or a window */
	struct thread_key waker; /* of a blocked interval: the thread that ended the wait; 0: none, or not known */
	/* The following fields are 0 without ACTIVITY_DETAILS. */
	/*
	 * of a runnable interval: number of the call or wait in which the thread had blocked; 0: it was preempted, a
	 * quota throttled it, or not known. Always 0 with ACTIVITY_IN_CALLS, where `reason` has that number.
	 */
	u32 call;
	u64 object; /* as in struct wait_detail; of ACTIVITY_STOPPED the signal */
	u32 stack; /* Python and native frames during the interval; 0: not recorded */
	u32 off_stack; /* frames with which the thread left the CPU (record --off-cpu); 0: not recorded */
	/*
	 * The thread that caused the wait, with its stack: of a wait for the GIL with ACTIVITY_HOLDERS the holder in
	 * this interval; else the waker or holder that the wait's event names, or the tracer's process; else, without
	 * a stack, `waker` or the thread that sent what the wait was for. 0: not known
	 */
	struct thread_key caused_by;
	u32 caused_by_stack;
	bool is_free; /* the GIL had no holder: a woken waiter was not running yet */
};

enum activity_flag {
	ACTIVITY_IN_CALLS = 1, /* cut running, runnable and unknown intervals by the thread's calls, too */
	ACTIVITY_DETAILS = 2, /* add objects, stacks, holders and wakers */
	ACTIVITY_HOLDERS = 4, /* with details: cut waits for a GIL by its holders */
	ACTIVITY_CPUS = 8, /* the first activity__read also sums how all processes used CPUs */
};

struct activity;
struct cpu_sums;

/* q selects time and threads, and must outlive *out. flags: enum activity_flag. 0 or negative errno; free anyway. */
int activity__new(struct activity **out, const struct query *q, u32 flags);
void activity__free(struct activity *a);

/*
 * Calls fn for all intervals of the selected time and threads, each time that it is called. Returns 0, fn's first other
 * result or negative errno.
 */
int activity__read(struct activity *a, int (*fn)(const struct activity_interval *i, void *arg), void *arg);

/*
 * To read chosen times of chosen threads, instead of activity__read: activity__add_thread for each thread (none: all
 * threads), activity__load for a time, activity__of for each thread and part of it. Returns 0 or negative errno.
 */
int activity__add_thread(struct activity *a, u32 pid, u32 tid);
/* Forgets all threads, so that those added from now on are the only ones. */
void activity__remove_threads(struct activity *a);
/* Sets *all to the time that activity__read reads, and returns in how many windows it does so. */
u32 activity__windows(const struct activity *a, struct trace_window *all);
/* Loads the time [from, to), and discards what was loaded before. Returns 0 or negative errno. */
int activity__load(struct activity *a, u64 from, u64 to);
/* As activity__read for [from, to) of one thread. It must be loaded, else all of this time is ACTIVITY_UNKNOWN. */
int activity__of(struct activity *a, u32 pid, u32 tid, u64 from, u64 to,
		 int (*fn)(const struct activity_interval *i, void *arg), void *arg);

/* "GIL", "cudaStreamSynchronize", "read", "waiting for a CPU"; lives as long as a. */
const char *activity__name(const struct activity *a, u32 reason);
/* Returns the cause of all intervals with this `reason`. */
enum activity_cause activity__cause(const struct activity *a, u32 reason);
/* Returns what the family states of the call or wait; NULL: `reason` is none. */
const struct event_meaning *activity__meaning(const struct activity *a, u32 reason);
/* The sums of ACTIVITY_CPUS; live as long as a. */
const struct cpu_sums *activity__cpus(const struct activity *a);
/* The files of ACTIVITY_DETAILS; live as long as a. */
const struct osrt_files *activity__files(const struct activity *a);
/* The futexes that are used as locks; lives as long as a. */
const struct lock_futexes *activity__futexes(const struct activity *a);

/* The average number of events in a window and the most windows of a trace; tests set small numbers. */
extern u32 activity_window, activity_windows_max;
