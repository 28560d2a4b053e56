/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call or wait that a thread was in while it was off the CPU: the spans of all families but the scheduler's,
 * by thread. Where several are open at a time, the one of the highest rank is used, then the one that began later
 * (the inner one): a wait for the GIL inside a futex system call is a wait for the GIL.
 */
#ifndef SONDE_MODEL_WAITS_H
#define SONDE_MODEL_WAITS_H

#include "model/activity_cause.h"
#include "model/lock_futexes.h"
#include "model/names.h"

struct waits;

struct thread_key {
	u32 pid, tid;
};

/* Details of a span beyond its name; 0: none. */
struct wait_detail {
	u64 object; /* address of the futex or the GIL, or the number of the system call's file (syscall_file) */
	u32 stack; /* of the thread */
	u32 by_pid, by_tid; /* the thread that ended it, else the one that held what it waited for */
	u32 by_stack; /* of that thread */
};

/* A part of a thread's time in which it was in one span. */
struct wait_part {
	u32 reason; /* 0: in none that was recorded */
	u64 from, to; /* ns */
	const struct wait_detail *detail; /* NULL: not asked for, or none */
};

/*
 * names and locks (NULL: only futexes whose events name the owner) must outlive it. details: stores them, 24 bytes
 * a span. 0 or -ENOMEM.
 */
int waits__new(struct waits **out, const struct schema *schema, const struct names *names,
	       const struct lock_futexes *locks, bool details);
void waits__free(struct waits *w);
/* Takes spans of these threads alone: keys are struct thread_key; threads must outlive the feeding. NULL: of all. */
void waits__choose(struct waits *w, const struct map *threads);

/* The event kinds to feed it with, NULL-terminated. */
const struct schema_event *const *waits__kinds(const struct waits *w);
/* Takes all rows of one of them. 0 or -ENOMEM. */
int waits__feed(struct waits *w, const struct rows *rows);
/* Forgets the spans; the reasons' numbers stay. */
void waits__forget(struct waits *w);

/* The spans of one thread until the next waits__forget or waits__feed; NULL: it has none. */
struct thread_waits;
struct thread_waits *waits__thread(const struct waits *w, u32 pid, u32 tid);
/*
 * Cuts [from, to) of a thread and calls fn for the parts in order. ns. Parts that follow each other differ in their
 * reason, or, where details are stored, in their detail.
 * blocked: the thread was uninterruptible, as it is when it waits for a disk.
 */
int waits__explain(const struct waits *w, struct thread_waits *thread, bool blocked, u64 from, u64 to,
		   int (*fn)(const struct wait_part *part, void *arg), void *arg);
/* "GIL", "cudaStreamSynchronize", "read"; lives as long as w. NULL: no such number. */
const char *waits__reason(const struct waits *w, u32 reason);
enum activity_cause waits__cause(const struct waits *w, u32 reason);

#endif
