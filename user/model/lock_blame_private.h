/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by lock_segments.c, which cuts waits, and lock_blame.c, which sums up what the holders did. */
#pragma once

#include "model/lock_blame.h"
#include "model/lock_waits.h"

#define LOCK_SEGMENTS_MAX 4000000u

/* A part of a wait that is attributed to one thread */
struct lock_segment {
	u64 from, to; /* ns */
	u32 row;
};

/* The segments attributed to one thread, sorted by their start */
struct lock_holder {
	struct lock_segment *segments;
	u32 n;
	u32 *ends; /* indices of the segments, sorted by their end */
	/* State of the sweep over segments by time: */
	u32 n_begun, n_ended; /* number of segments that began and ended before the current time */
	struct map active; /* u32 row -> u32 number of its segments that began and did not end */
};

/* One waiter of a row */
struct row_waiter {
	u32 row, pid, tid;
};

struct lock_blame {
	const struct query *q;
	const struct stacks *stacks;
	const struct activity *activity;
	struct lock_waits waits;
	struct map holders; /* struct thread_key -> struct lock_holder */
	struct map rows; /* struct lock_row_key -> struct lock_row */
	struct map activities; /* struct lock_activity_key -> struct lock_activity */
	struct map row_waiters; /* struct row_waiter -> u32 number of the last counted wait plus 1 */
	struct map codes; /* u32 stack -> u32 frame */
	struct map frequent_stacks; /* struct user_key -> struct vote for the most frequent stack */
	/* Caches of the last lookups: most segments of a thread are of one row. */
	struct lock_row_key last_row_key;
	struct lock_row *last_row; /* NULL: none yet */
	struct row_waiter last_waiter_key;
	u32 *last_waiter; /* NULL: none yet */
	bool has_activity; /* the trace has what threads did: holders are filled */
	u32 n_segments;
	u64 left_out;
	u32 *order; /* rows by time */
	u32 *activity_order; /* activities by row, then by time */
	u32 n_activities; /* in activity_order */
};

/* Cuts all waits: fills holders and rows. 0 or -ENOMEM. */
int lock_segments__cut(struct lock_blame *b);
/* lock_kind__code with a cache */
u32 lock_blame__code(struct lock_blame *b, u32 stack);
