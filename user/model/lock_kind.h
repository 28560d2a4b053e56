/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Classifies a wait on a futex by the stack of the waiting thread. */
#pragma once

#include "model/stacks.h"

enum lock_kind {
	LOCK_KIND_UNKNOWN, /* no stack, or an unknown function */
	LOCK_KIND_MUTEX, /* a lock that a thread holds: threading.Lock, RLock, pthread_mutex_t, pthread_rwlock_t, .. */
	LOCK_KIND_CONDITION, /* another thread signals it, as it does all following kinds */
	LOCK_KIND_EVENT, /* threading.Event */
	LOCK_KIND_QUEUE, /* queue.Queue, SimpleQueue, an executor's queue */
	LOCK_KIND_SEMAPHORE,
	LOCK_KIND_BARRIER,
	LOCK_KIND_RESULT, /* the result of a future */
	LOCK_KIND_JOIN, /* the end of a thread */
	LOCK_KINDS
};

/* LOCK_KIND_UNKNOWN for stack 0 */
enum lock_kind lock_kind__of_stack(const struct stacks *s, u32 stack);
/*
 * Is it a wait in a function of the C library that is for locks alone, such as pthread_rwlock_rdlock()? Another lock,
 * as those of Python, may be used to signal something.
 */
bool lock_kind__is_native_lock(const struct stacks *s, u32 stack);
/* Does a thread of OpenMP wait for the next part of a loop? No code of the program has called it. */
bool lock_kind__is_idle_in_openmp(const struct stacks *s, u32 stack);
/* Does it wait until a channel of Rust has room for a message? */
bool lock_kind__is_send(const struct stacks *s, u32 stack);
/* Is it a function of libc, the C++ library, the interpreter and the like, which other code calls as a mechanism? */
bool lock_kind__is_mechanism(const struct stack_frame *f);
/* "lock", "condition", "end of a thread" */
const char *lock_kind__text(enum lock_kind kind);
/*
 * Returns the frame that identifies a wait or release: the innermost Python frame of the user's own code, else of an
 * installed package, else of the standard library, else the innermost native frame outside of libc, the C++ library and
 * the interpreter. 0: none
 */
u32 lock_kind__code(const struct stacks *s, u32 stack);
