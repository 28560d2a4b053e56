/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stops a thread of another process with ptrace, calls functions in it, and restores it. */
#pragma once

#include "core/types.h"

#include <signal.h>
#include <stddef.h>
#include <sys/user.h>

#define TRACEE_XSTATE_MAX 16384 /* bytes; with AMX, a thread has 11 KiB of it */

struct tracee {
	u32 pid, tid;
	u64 held_since; /* CLOCK_MONOTONIC, ns */
	u64 stopped_since, stopped_ns; /* start of its last stop; sum of all stops, an upper bound; ns */
	bool seized, stopped;
	bool at_signal; /* its last stop is one at which the kernel delivers a signal, so ptrace can pass one on */
	bool changed; /* its registers and signal mask are replaced */
	struct user_regs_struct regs; /* the thread's own */
	u64 mask; /* the signals that the thread had blocked */
	u8 xstate[TRACEE_XSTATE_MAX]; /* its vector and floating-point registers */
	size_t xstate_size;
	siginfo_t pending; /* a signal that can't be blocked and arrived during a call; the release delivers it */
	int pending_signal; /* 0: none */
};

/* The program counter, stack pointer and frame pointer that the thread had when it was interrupted. */
static inline u64 tracee__pc(const struct tracee *t)
{
	return t->regs.rip;
}
static inline u64 tracee__sp(const struct tracee *t)
{
	return t->regs.rsp;
}
static inline u64 tracee__frame_pointer(const struct tracee *t)
{
	return t->regs.rbp;
}

/*
 * Interrupts a thread. Returns 0, -ETIMEDOUT: it did not stop, -ESRCH: it ended, or negative errno (-EPERM: not
 * allowed, -ENOEXEC: it runs 32-bit code).
 */
int tracee__seize(struct tracee *t, u32 pid, u32 tid);
/*
 * Returns whether the thread was interrupted in a system call that may sleep, and during which its caller holds no lock
 * of the C library: a function that is called in this thread and needs the lock would wait for it forever.
 */
bool tracee__sleeps(const struct tracee *t);
/* Saves the registers and the signal mask, which calls change, and blocks signals. Returns 0 or negative errno. */
int tracee__borrow(struct tracee *t);
/*
 * Calls a function. stack: the end of the memory for its stack; 0: it uses the thread's own. Returns 0,
 * -ESRCH: the thread ended meanwhile, -EFAULT: it crashed, -ETIMEDOUT: it had not returned after limit_ns.
 */
int tracee__call(struct tracee *t, u64 function, const u64 *args, u32 n, u64 stack, u64 limit_ns, u64 *result);
/*
 * Restores what tracee__borrow saved and lets the thread continue; an interrupted system call is restarted. Returns the
 * ns since tracee__seize.
 */
u64 tracee__release(struct tracee *t);
