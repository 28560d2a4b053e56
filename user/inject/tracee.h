/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread that is borrowed for function calls and then restored. */
#ifndef SONDE_INJECT_TRACEE_H
#define SONDE_INJECT_TRACEE_H

#include "core/types.h"

#include <signal.h>
#include <stddef.h>
#include <sys/user.h>

#define TRACEE_XSTATE_MAX 16384 /* AMX has 11 KiB */

struct tracee {
	u32 pid, tid;
	u64 held_since; /* CLOCK_MONOTONIC, ns */
	u64 stopped_since, stopped_ns; /* the part of that time in which it did not run, at most */
	bool seized, stopped;
	bool at_signal; /* it stopped at a point where a signal can be delivered */
	bool changed; /* its registers and signal mask are replaced */
	struct user_regs_struct regs; /* the thread's own */
	u64 mask; /* the signals that the thread had blocked */
	u8 xstate[TRACEE_XSTATE_MAX]; /* its vector and floating-point registers */
	size_t xstate_size;
	siginfo_t kept; /* a signal that arrived meanwhile and can't be blocked */
	int kept_signal; /* 0: none */
};

/* The program counter, from its saved registers. */
#ifdef __x86_64__
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
#else
static inline u64 tracee__pc(const struct tracee *t)
{
	return t->regs.pc;
}
static inline u64 tracee__sp(const struct tracee *t)
{
	return t->regs.sp;
}
static inline u64 tracee__frame_pointer(const struct tracee *t)
{
	return t->regs.regs[29];
}
#endif

/*
 * Interrupts a thread. Returns 0, -ETIMEDOUT: it did not stop, -ESRCH: it ended, or negative errno (-EPERM: not
 * allowed, -ENOEXEC: it runs 32-bit code).
 */
int tracee__seize(struct tracee *t, u32 pid, u32 tid);
/* Is it in a system call that sleeps until something happens, and that is made without a lock of the C library? */
bool tracee__sleeps(const struct tracee *t);
/* Saves what calls change, and blocks signals. Returns 0 or negative errno. */
int tracee__borrow(struct tracee *t);
/*
 * Calls a function on the stack that ends at `stack`, 0: on the thread's own. Returns 0, -ESRCH: it ended meanwhile,
 * -EFAULT: it crashed, -ETIMEDOUT: it had not returned after limit_ns.
 */
int tracee__call(struct tracee *t, u64 function, const u64 *args, u32 n, u64 stack, u64 limit_ns, u64 *result);
/*
 * Restores everything and lets it continue; an interrupted system call is restarted. Returns for how long it was
 * stopped or used, in ns.
 */
u64 tracee__release(struct tracee *t);

#endif
