/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between waits.c, which collects the spans of each thread, and waits_segments.c, which decides when which one counts.
 */
#pragma once

#include "model/meaning.h"
#include "model/waits.h"

struct wait_span {
	u64 start, end;
	u32 reason : 24;
	u32 rank : 7;
	u32 uninterruptible : 1; /* counts only while the thread is uninterruptible */
	u32 detail; /* index in details plus one; 0: none */
};

/* Up to the next segment the same span counts. */
struct wait_segment {
	u64 from;
	u32 span[2]; /* index plus one; 0: none; [1] is for an uninterruptible thread */
};

struct thread_waits {
	struct wait_span *spans;
	u32 n;
	struct wait_segment *segments; /* which span counts when, by time; made by thread_waits__sort() */
	u32 n_segments;
	u32 begun; /* segments that had begun at the time of the last question, as questions mostly go forward */
	bool sorted;
	bool failed; /* there was no memory for the segments */
};

/* Makes the segments; sets t->failed without memory. */
void thread_waits__sort(struct thread_waits *t);
/* Returns the span that counts at `at` or NULL, and lowers *until to where that changes. */
const struct wait_span *thread_waits__at(struct thread_waits *t, bool uninterruptible, u64 at, u64 *until);
