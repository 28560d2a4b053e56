/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of contended locks: waits on futexes. docs/syscall.md, "Waits for locks", describes the fields.
 * Sources: include/uapi/linux/futex.h; glibc's struct __pthread_mutex_s (bits/struct_mutex.h, 2.2 to
 * 2.42) for the owner.
 */
#pragma once

#include "core/event.h"

FAMILY(lock, 0x0a, FAMILY_ON_REQUEST, "waits for contended locks and conditions (futexes), their holders and wakers");

enum lock_op {
	LOCK_WAIT =
		0, /* FUTEX_WAIT, FUTEX_WAIT_BITSET, futex_wait(): a mutex, condition, semaphore, barrier, join, ... */
	LOCK_PI = 1, /* a priority inheriting mutex */
	LOCK_REQUEUE = 2, /* FUTEX_WAIT_REQUEUE_PI: a condition with such a mutex */
	LOCK_WAITV = 3, /* several futexes at once */
};

struct lock_wait {
	struct span span;
	u64 lock UNIT(hex) DOC("address of the futex word");
	u64 site UNIT(hex)
		DOC("return address of the innermost call from outside the library that waits; 0: not found");
	u64 caller UNIT(hex) DOC("return address of its caller, by frame pointer; 0: no frame pointer");
	u64 caller2 UNIT(hex) DOC("return address of the caller's caller; 0: no frame pointer");
	u64 woken UNIT(moment) DOC("when the waker woke the thread; 0: no thread did");
	u32 owner DOC(
		"thread that held the lock at the start, by the value of the futex: its number in the process's pid namespace; 0: not known");
	u32 waker_pid UNIT(task) DOC("process that woke it");
	u32 waker_tid UNIT(task) DOC("thread that woke it; 0: a signal or a timeout ended the wait, or there was none");
	u32 episode DOC("number within the thread: waits with the same number are one attempt to get one lock");
	u32 value UNIT(hex) DOC("value that the futex had to have for the wait to begin");
	s32 result UNIT(errno) DOC(
		"0: woken, -EAGAIN: the futex had another value and there was no wait, -ETIMEDOUT, -EINTR or -512: a signal");
	enum lock_op op;
} EVENT(lock_wait, 0x0a01, "a wait on a futex");

struct lock_site {
	struct event event;
	u64 address UNIT(hex) DOC("as in the fields site, caller and caller2 of waits of this process");
	u64 offset UNIT(hex) DOC("in the file");
	u32 module UNIT(string) DOC("the file mapped there");
	u32 symbol UNIT(string) DOC("function and offset in it; empty: not known");
} EVENT(lock_site, 0x0a02, "the name of a call site, once per process");
