/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code held the locks that other threads waited for, and what it did meanwhile.
 *
 * A wait for a lock is divided at each release of the lock: the time up to a release is attributed to the thread that
 * releases it, with its stack at the release. Where that thread itself waited for a lock, the wait is followed to the
 * holder of that lock, and so on. So each segment of a wait has one thread at the end of its chain, whose activity
 * shows what it did. Time after the last recorded release in the wait is attributed to the next thread that releases
 * the lock, if until then there was always a waiter; else to the thread that the last release woke; else to the owner
 * that family lock read from the lock; else, if only two threads use the lock, to the other one; else the holder is
 * not known. docs/locks.md, "How a wait is divided", has the conditions.
 *
 * A wait for a condition, a queue and the like is attributed as a whole to the thread that ended it, and not followed.
 */
#pragma once

#include "model/activity.h"
#include "model/lock_kind.h"

#define LOCK_CHAIN_MAX 8 /* the most locks in a chain */

/* Waits of one waiter's code for one lock (or for one kind of condition) because of one holder's code. */
struct lock_row_key {
	u64 address; /* of the lock; 0: not a lock */
	u32 pid, kind; /* enum lock_kind */
	u32 waiter_code, waiter_line; /* as in struct stack_frame; 0: not known */
	u32 holder_code, holder_line; /* the code with which the holder released the lock, or a thread ended the wait */
	u32 last_code, last_line; /* the code at the end of the chain; without a chain the holder's */
	u32 is_known; /* 0: the thread at the end of the chain is not known */
	u32 is_cycle; /* 1: the chain leads back to one of its threads, and the wait never ended: a deadlock */
};

struct lock_row {
	u64 ns, waits; /* waits: all that have a segment in the row */
	u64 unknown_ns; /* time for which the holder's activity is not known */
	u32 waiter, holder, last; /* frames, by lock_kind__code; 0: not known */
	struct thread_key waiting, held_by, last_held_by; /* of the longest segment */
	u32 waiters; /* number of threads */
	u64 longest; /* ns of the longest segment */
	u64 open; /* waits that had not ended */
	u32 number; /* in order of creation */
};

/* What the thread at the end of the chain did in the time of a row: one activity at one place in the code */
struct lock_activity_key {
	u32 row;
	u32 reason; /* of activity__name */
	u32 code, line; /* 0: not known */
};

struct lock_activity {
	u64 ns;
	u32 frame; /* a frame of that code; 0: not known */
	u32 stack; /* a stack that leads to it: with the native functions that this code called */
	enum activity_cause cause;
};

/* What the thread at the end of the chain did for most of the time of a row, at all places in the code */
struct lock_main_activity {
	u32 reason; /* of the place with most time; of one with a stack, if there is any */
	u32 frame, stack; /* as in struct lock_activity */
	enum activity_cause cause;
	u64 ns; /* 0: not known */
	double percent; /* of the row's time */
};

struct lock_blame;

/* Reads and cuts the waits. q, stacks and activity must outlive it. 0 or negative errno; free in any case. */
int lock_blame__new(struct lock_blame **out, const struct query *q, const struct stacks *stacks,
		    const struct activity *activity);
void lock_blame__free(struct lock_blame *b);
/* Returns whether there are holders whose activity is needed. */
bool lock_blame__needs_activity(const struct lock_blame *b);
/* Adds an interval of activity__read with ACTIVITY_DETAILS. 0 or -ENOMEM. */
int lock_blame__interval(struct lock_blame *b, const struct activity_interval *i);
/* Call once after the last interval: reads samples, which show the code that holders ran. 0 or negative errno. */
int lock_blame__finish(struct lock_blame *b);

/* After lock_blame__finish: the rows by their time, the largest first */
u32 lock_blame__rows(const struct lock_blame *b);
const struct lock_row_key *lock_blame__key(const struct lock_blame *b, u32 i);
const struct lock_row *lock_blame__row(const struct lock_blame *b, u32 i);
/*
 * Divides [from, to), in which the thread waits for a lock, at the releases of the lock. Calls fn for each segment with
 * the holder of this lock (a chain is not followed; tid 0: not known) and the holder's stack at the release. Call it
 * after lock_blame__finish. Returns 0, or fn's first other result.
 */
int lock_blame__holders(const struct lock_blame *b, struct thread_key waiter, u64 from, u64 to,
			int (*fn)(struct thread_key holder, u32 stack, u64 from, u64 to, void *arg), void *arg);
/* Does the thread wait, as the trace ends, for a lock that only threads of its process can release? */
bool lock_blame__is_private(const struct lock_blame *b, struct thread_key waiter);
/* Returns the pid or tid to print for an id in a key or row. */
u32 lock_blame__number(const struct lock_blame *b, u32 id);
struct lock_main_activity lock_blame__main_activity(const struct lock_blame *b, u32 i);
/* Returns the ns of waits that are in no row, because there were too many waits or segments. */
u64 lock_blame__left_out(const struct lock_blame *b);
