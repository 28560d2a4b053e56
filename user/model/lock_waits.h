/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All waits for locks in a trace and their releases: the input of lock_blame.h. Long waits come from sample_wake (the
 * code that ends a wait) and sample_off (the code that waits), others from lock_wait of family lock.
 */
#pragma once

#include "model/lock_kind.h"
#include "model/query.h"
#include "model/waits.h"
#include "util/map.h"

#define LOCK_NONE      (~0u)
#define LOCK_WAITS_MAX 2000000u

/* A lock: a futex, or an object that several futexes belong to (PyMutex). */
struct lock_key {
	u64 address;
	u32 pid;
	u32 unused;
};

struct lock_object {
	enum lock_kind kind; /* by most of its waits' time */
	bool is_three_state; /* its futex has three values: 0 free, 1 held, 2 held with waiters */
	bool is_native; /* threads wait for it in functions of the C library that only take locks */
	struct thread_key users[2]; /* the first two threads that wait for it or release it */
	u32 n_users; /* 3: more than two */
	u32 first, n; /* its releases in lock_waits.releases, by time */
};

struct lock_waited {
	struct thread_key thread;
	u64 from, to; /* ns; the wait ends at the release, not when the thread runs again */
	u32 lock; /* number in locks */
	u32 stack; /* 0: not known */
	u32 run; /* number of a sequence of waits for one lock without long gaps */
	u32 owner; /* tid in the lock when the wait began, or when the trace ended; 0: none */
	u32 release; /* index of the release that ended it; LOCK_NONE: not recorded */
	u8 kind; /* enum lock_kind */
	bool open; /* the trace ended first */
	bool is_private; /* the trace ended first, and no other process could end it */
	bool by_exit; /* it was ended by the kernel's wake-up at a thread's end */
};

struct lock_release {
	u64 time;
	struct thread_key thread;
	u32 stack; /* 0: not known */
	u32 wait; /* index of the wait that it ended */
};

struct lock_waits {
	const struct query *q;
	const struct stacks *stacks;
	struct map locks; /* struct lock_key -> struct lock_object */
	struct lock_waited *waits; /* by thread, then by time */
	struct map threads; /* struct thread_key -> where its waits are */
	struct lock_release *releases; /* by lock, then by time */
	u32 n_waits, n_releases;
	u64 left_out; /* ns of selected waits beyond LOCK_WAITS_MAX, which are not stored */
	const struct lock_futexes *futexes;
};

/*
 * Loads the waits in the time of q and shortly before and after. q, stacks and futexes must outlive l. 0 or negative
 * errno; free in any case.
 */
int lock_waits__load(struct lock_waits *l, const struct query *q, const struct stacks *stacks,
		     const struct lock_futexes *futexes);
void lock_waits__free(struct lock_waits *l);
/* Returns the index of the thread's first wait that ends after `time`. */
u32 lock_waits__of_thread(const struct lock_waits *l, struct thread_key thread, u64 time);
/* Returns the index of the lock's first release after `time`; beyond its last release if there is none. */
u32 lock_waits__release(const struct lock_waits *l, u32 lock, u64 time);

/* Returns the wait that the release ended. */
static inline const struct lock_waited *lock_waits__ended_by(const struct lock_waits *l, const struct lock_release *r)
{
	return &l->waits[r->wait];
}

static inline const struct lock_object *lock_waits__lock(const struct lock_waits *l, u32 i)
{
	return map__value(&l->locks, i);
}
