/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call or wait that a thread was in while it was off the CPU: the spans of all families but the scheduler's, by
 * thread. Of several open spans, the one of the highest rank counts, then the one that began later (the inner one): a
 * wait for the GIL inside a futex system call is a wait for the GIL.
 */
#pragma once

#include "model/activity_cause.h"
#include "model/lock_futexes.h"
#include "model/meaning.h"
#include "model/names.h"

struct waits;

struct thread_key {
	u32 pid, tid;
};

static inline bool thread_key__is_same(struct thread_key a, struct thread_key b)
{
	return a.pid == b.pid && a.tid == b.tid;
}

/* Details of a span; 0: none */
struct wait_detail {
	u64 object; /* address of the futex or the GIL, or the number of the system call's file (syscall_file) */
	u32 stack; /* of the waiting thread */
	u32 by_pid, by_tid; /* the waker, else the holder of what the thread waited for */
	u32 by_stack; /* of the holder */
};

/* A part of a thread's time in which it was in one span. */
struct wait_part {
	u32 reason; /* 0: in no recorded span */
	u64 from, to; /* ns */
	const struct wait_detail *detail; /* NULL: not requested, or none */
};

/*
 * names and locks (NULL: only futexes whose events name an owner are locks) must outlive it. details: stores details,
 * 24 bytes a span. 0 or -ENOMEM.
 */
int waits__new(struct waits **out, const struct schema *schema, const struct names *names,
	       const struct lock_futexes *locks, bool details);
void waits__free(struct waits *w);
/* Limits it to spans of the threads that are keys (struct thread_key) of the map, which must outlive it. NULL: all. */
void waits__choose(struct waits *w, const struct map *threads);

/* Returns the event kinds to feed, NULL-terminated. */
const struct schema_event *const *waits__kinds(const struct waits *w);
/* Adds all rows of one of these kinds. 0 or -ENOMEM. */
int waits__feed(struct waits *w, const struct rows *rows);
/* Forgets the spans; numbers of reasons stay valid. */
void waits__forget(struct waits *w);

/* Returns the spans of one thread, valid until the next waits__forget or waits__feed; NULL: none. */
struct thread_waits;
struct thread_waits *waits__thread(const struct waits *w, u32 pid, u32 tid);
/*
 * Cuts [from, to) (ns) of a thread and calls fn for the parts in order. Successive parts differ in their reason or, if
 * details are stored, in their detail. uninterruptible: as it is when it waits for a disk.
 */
int waits__explain(const struct waits *w, struct thread_waits *thread, bool uninterruptible, u64 from, u64 to,
		   int (*fn)(const struct wait_part *part, void *arg), void *arg);
/* "GIL", "cudaStreamSynchronize", "read"; lives as long as w. NULL: no such number. */
const char *waits__reason(const struct waits *w, u32 reason);
enum activity_cause waits__cause(const struct waits *w, u32 reason);
/* What the family states of the span's event; NULL: no such number. */
const struct event_meaning *waits__meaning(const struct waits *w, u32 reason);
