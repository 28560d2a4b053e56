/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each thread did with its time, in stretches: on a CPU, wanting one, or
 * waiting, the waiting told by what the thread was in the middle of. Those of a
 * thread tile the time for which the scheduler's events know it.
 */
#ifndef SONDE_MODEL_STRETCHES_H
#define SONDE_MODEL_STRETCHES_H

#include "model/waits.h"
#include "model/query.h"

/* Beside the numbers of waits__reason */
enum stretch_kind {
	STRETCH_RUN = 1u << 30, /* on a CPU */
	STRETCH_WANTED, /* wanted one */
	/* waited in the middle of nothing that was recorded: by the scheduler's state */
	STRETCH_SLEEP,
	STRETCH_BLOCKED,
	STRETCH_OTHER,
};

struct thread_key {
	u32 pid, tid;
};

struct stretch {
	struct thread_key thread;
	u32 what; /* enum stretch_kind, or a reason's number */
	u64 from, to; /* ns */
	struct thread_key waker; /* who ended the wait that this is a part of; 0: nobody, or not known */
	bool blocked; /* a wait that signals don't end: for a disk, mostly */
	bool new; /* of another `what` than the thread's time up to here in this wait */
};

struct stretches;

/* 0 or -ENOMEM */
int stretches__new(struct stretches **out, const struct query *args);
void stretches__free(struct stretches *s);
/* Calls fn for all that lie in the time asked for; a thread's own are not in order. 0, fn's other result or negative errno. */
int stretches__read(struct stretches *s, int (*fn)(const struct stretch *stretch, void *arg), void *arg);
/* In words, for all but running */
const char *stretches__what(const struct stretches *s, u32 what);
/* One character: w wanted a CPU, . asleep, d uninterruptible, else as waits__mark */
char stretches__mark(const struct stretches *s, u32 what);

#endif
