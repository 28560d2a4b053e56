/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of contended locks: waits on futexes. docs/syscall.md has the reasons.
 * Sources: include/uapi/linux/futex.h; glibc's struct __pthread_mutex_s (bits/struct_mutex.h, 2.2 to
 * 2.42) for the owner.
 */
#ifndef SONDE_LOCK_H
#define SONDE_LOCK_H

#include "core/event.h"

FAMILY(lock, 0x0a, FAMILY_ASKED, "waits for contended locks and conditions (futexes): whose they are and who let go");

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
	u64 caller2 UNIT(hex) DOC("and of that one's");
	u64 woken UNIT(moment) DOC("when the waker released it, 0: no thread did");
	u32 owner DOC(
		"thread that had the lock at the start, as the lock word says it: numbered in the process's pid namespace; 0: it does not say");
	u32 waker_pid UNIT(task) DOC("process that woke it");
	u32 waker_tid UNIT(task) DOC("thread that woke it, 0: a signal or the time did, or it did not wait");
	u32 episode DOC("of this thread: waits of one number are one attempt to get one lock");
	u32 value UNIT(hex) DOC("what the word was to hold for the wait to begin");
	s32 result UNIT(errno)
		DOC("0 woken, -EAGAIN the word had changed: no wait, -ETIMEDOUT, -EINTR or -512 a signal");
	enum lock_op op;
} EVENT(lock_wait, 0x0a01, "a wait on a futex");

struct lock_site {
	struct event event;
	u64 address UNIT(hex) DOC("as in the fields site, caller and caller2 of waits of this process");
	u64 offset UNIT(hex) DOC("in the file");
	u32 module UNIT(string) DOC("the file mapped there");
	u32 symbol UNIT(string) DOC("function and offset in it, empty if the file does not say");
} EVENT(lock_site, 0x0a02, "the name of a call site, once a process");

#endif
