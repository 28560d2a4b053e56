/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands and flags of the system call futex. Source: include/uapi/linux/futex.h. */
#pragma once

#include "core/native.bpf.h"

#define FUTEX_COMMAND	      127 /* the bits of the operation that are not flags */
#define FUTEX_WAIT	      0
#define FUTEX_WAKE	      1
#define FUTEX_REQUEUE	      3
#define FUTEX_CMP_REQUEUE     4
#define FUTEX_WAKE_OP	      5
#define FUTEX_LOCK_PI	      6
#define FUTEX_UNLOCK_PI	      7
#define FUTEX_WAIT_BITSET     9
#define FUTEX_WAKE_BITSET     10
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_CMP_REQUEUE_PI  12
#define FUTEX_LOCK_PI2	      13
#define FUTEX_PRIVATE_FLAG    128
#define FUTEX_CLOCK_REALTIME  256
#define FUTEX_WAITERS	      0x80000000
#define FUTEX_TID_MASK	      0x3fffffff

/* Does the command acquire a priority-inheriting lock, and wait for its holder? */
static inline bool futex__locks_pi(u32 command)
{
	return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
}

/* Does the command wait? */
static inline bool futex__waits(u32 command)
{
	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI ||
	       futex__locks_pi(command);
}

/*
 * The thread that holds the lock, as far as the futex shows it, by its number in the process's pid namespace; 0: it
 * does not. Priority-inheriting and robust futexes contain the holder's TID. A thread that waits for a glibc mutex
 * waits while the futex is 2, and the mutex has its owner's TID eight bytes after the futex. Other locks that use the
 * value 2 have something else there, so values that can't be a TID are ignored. other: as for native__read().
 */
static __always_inline u32 futex__owner(u64 futex, u32 op, u32 value, struct task_struct *other)
{
	u32 owner = 0;

	if (futex__locks_pi(op)) {
		native__read(&owner, sizeof(owner), futex, other);
		return owner & FUTEX_TID_MASK;
	}
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return 0;
	if (value & FUTEX_WAITERS)
		owner = value & FUTEX_TID_MASK;
	else if (value == 2)
		native__read(&owner, sizeof(owner), futex + 8, other);
	/* PID_MAX_LIMIT */
	return owner > 1 && owner <= 4194304 ? owner : 0;
}
