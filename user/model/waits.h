/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread was in the middle of while it was off its CPU: the spans of all
 * families but the scheduler's, by thread. Where several are open at a time, that
 * of the higher rank counts, then the one that began later (the inner one): a
 * wait for the GIL inside of a futex system call is a wait for the GIL.
 */
#ifndef SONDE_MODEL_WAITS_H
#define SONDE_MODEL_WAITS_H

#include "model/lock_words.h"
#include "model/names.h"

struct waits;

/* names and locks (NULL: only those that say whose they are) must outlive it. 0 or -ENOMEM. */
int waits__new(struct waits **out, const struct schema *schema, const struct names *names,
	       const struct lock_words *locks);
void waits__free(struct waits *w);

/* The kinds that it wants to be fed with, NULL-terminated. */
const struct schema_event *const *waits__kinds(const struct waits *w);
/* Takes all rows of one of them. 0 or -ENOMEM. */
int waits__feed(struct waits *w, const struct rows *rows);
/* Forgets the spans; the reasons' numbers stay. */
void waits__forget(struct waits *w);

/*
 * Cuts [from, to) of a thread into stretches of one reason each and calls fn for
 * them in order; reason 0: in the middle of nothing that was recorded. ns.
 * blocked: the thread was uninterruptible, as it is when it waits for a disk.
 */
int waits__explain(struct waits *w, u32 pid, u32 tid, bool blocked, u64 from, u64 to,
		   int (*fn)(u32 reason, u64 from, u64 to, void *arg), void *arg);
/* "GIL", "cudaStreamSynchronize", "read"; lives as long as w. NULL: no such number. */
const char *waits__reason(const struct waits *w, u32 reason);
/* One character for its kind: g the GIL, l a lock, n NCCL, c another library, s a system call, d a disk or network. */
char waits__mark(const struct waits *w, u32 reason);

#endif
