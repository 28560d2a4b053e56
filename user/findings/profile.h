/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wait profile: what all threads did, summed in one pass over the activity. A cell is one thread in one state,
 * call, stack and so on; modules read cells, or groups of them (findings/group.h).
 */
#pragma once

#include "model/activity.h"
#include "model/stacks.h"
#include "util/map.h"

/* Once there are so many cells, new ones have only a thread, reason and state: this bounds the memory. */
#define PROFILE_CELLS_MAX 400000u

struct profile_key {
	struct thread_key thread;
	u32 reason; /* number for activity__name; of a runnable thread: of the call in which it had blocked, if any */
	u32 stack;
	u64 object;
	struct thread_key caused_by;
	u32 caused_by_stack;
	u8 state; /* enum activity_state */
	u8 uninterruptible;
	u8 is_free; /* the GIL had no holder */
	u8 unused;
};

struct profile_cell {
	u64 ns, times, longest;
	u64 long_times; /* of `times`: waits of PROFILE_LONG or longer, which would block an event loop */
	u64 short_times; /* of `times`: waits that have a stack although they are shorter than the threshold */
	/* waits before which the thread was busy for PROFILE_LONG or longer; the longest of these times, ns */
	u64 busy_times, busy_longest;
	enum activity_cause cause;
	u32 kind; /* enum finding_kind, by findings/classify.c; once findings__read has returned, by `decided` if set */
	u32 decided; /* enum finding_kind, by the module that has a finding of it; FINDING_NONE: it agrees with `kind` */
	u32 code; /* id of the frame that findings name: the innermost of the user's code, else of Python; 0: none */
	bool is_delay; /* the thread was runnable after a wait of this kind, by findings/classify.c */
	u32 next; /* number of the thread's next cell plus one; 0: none */
	/* If profile__new was asked for parts of the time: the ns in n_parts of them, from part number `first` on */
	u32 first, n_parts;
	u64 *parts;
};

/* Returns the ns of the cell in a part of the time. */
static inline u64 profile_cell__in_part(const struct profile_cell *c, u32 part)
{
	return part >= c->first && part - c->first < c->n_parts ? c->parts[part - c->first] : 0;
}

/*
 * Waits are uneven if there are at least so many, the longest takes so many quarters of the average, and one of so many
 * is longer than PROFILE_LONG: a few long ones among short ones are the kernel's delays.
 */
#define PROFILE_UNEVEN_TIMES 8
#define PROFILE_UNEVEN	     9
#define PROFILE_UNEVEN_LONG  10

/* Returns whether the waits differ much in length. Retries whose delays grow are an example. */
static inline bool profile_cell__is_uneven(const struct profile_cell *c)
{
	return c->times >= PROFILE_UNEVEN_TIMES && PROFILE_UNEVEN_LONG * c->long_times >= c->times &&
	       4 * c->longest >= PROFILE_UNEVEN * (c->ns / c->times);
}

/* A callback that takes at least this long is reported as one that blocks its event loop, ns. */
#define PROFILE_LONG 50000000u

struct profile_thread {
	u64 wall, run, runnable, blocked, unknown; /* ns */
	u64 unmeasured; /* part of unknown, not of wall: between slices of time (record --cost-limit), ns */
	u64 idle_ns; /* idle part of blocked, ns, by findings/classify.c */
	u64 busy; /* ns since its last wait that was not for the GIL */
	bool has_python; /* one of its stacks has Python frames */
	bool may_run_loop; /* by findings/hidden_loops.c: an event loop that no frame shows */
	u32 cells; /* number of its last cell plus one, which leads to the others */
};

struct profile_sample_key {
	struct thread_key thread;
	u32 stack;
	u32 unused;
};

struct profile_sample {
	u64 ns, gil_ns, kernel_ns, samples;
	u64 fault_ns; /* part of kernel_ns outside of system calls: the kernel mostly handled page faults */
};

struct profile {
	const struct query *q;
	struct map cells; /* struct profile_key -> struct profile_cell */
	struct map threads; /* struct thread_key -> struct profile_thread */
	struct thread_key last_thread; /* thread of the last interval; the next one is mostly of the same thread */
	struct profile_thread *last; /* entry of last_thread in threads; NULL: there was no interval yet */
	struct map samples; /* struct profile_sample_key -> struct profile_sample */
	u64 sampled_ns; /* of all samples */
	u64 kinds; /* FINDING_BIT of the kinds that cells have or had, by findings.c */
	u64 threshold; /* waits of at least this length all have a stack, ns; 0: no wait has one */
	bool has_sched, has_off_stacks;
	u32 n_parts; /* 0: cells have no parts */
	u64 from, width; /* start of the first part, length of each, ns */
	struct {
		struct profile_key key;
		struct profile_cell *cell;
	} recent[16];
};

/*
 * n_parts: cells also have their time in each of so many parts of the selected time. Returns 0 or negative errno; call
 * profile__free in any case.
 */
int profile__new(struct profile **out, const struct query *q, u32 n_parts);
void profile__free(struct profile *p);
/* Adds an interval. 0 or -ENOMEM. */
int profile__add(struct profile *p, const struct activity_interval *i);
/* Returns the cell that an interval was added to; NULL: it was added to none. */
const struct profile_cell *profile__find(const struct profile *p, const struct activity_interval *i);
/* Call once after the last interval: reads samples. 0 or negative errno. */
int profile__finish(struct profile *p);

static inline const struct profile_key *profile__key(const struct profile *p, u32 i)
{
	return map__key(&p->cells, i);
}

static inline struct profile_cell *profile__cell(const struct profile *p, u32 i)
{
	return map__value(&p->cells, i);
}
