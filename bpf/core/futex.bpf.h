/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands and flags of the system call futex. Source: include/uapi/linux/futex.h. */
#pragma once

#include "types.h"

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
