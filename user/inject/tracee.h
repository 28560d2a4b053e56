/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread that is borrowed for function calls and given back as it was. */
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
	u64 stopped_since, stopped_ns; /* a part of that time in which it did not run, at most */
	bool seized, stopped;
	bool at_signal; /* it stopped where a signal can be given to it */
	bool changed; /* registers and mask are not its own */
	struct user_regs_struct regs; /* its own */
	u64 mask; /* its blocked signals */
	u8 xstate[TRACEE_XSTATE_MAX]; /* and vector and floating-point registers */
	size_t xstate_size;
	siginfo_t kept; /* a signal that came meanwhile and can't be blocked */
	int kept_signal; /* 0: none */
};

/* Where it is: of its own registers. */
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

/* Interrupts a thread. 0, -ETIMEDOUT: it did not stop, -ESRCH: it ended, or negative errno (-EPERM: not allowed, -ENOEXEC: it runs 32-bit code). */
int tracee__seize(struct tracee *t, u32 pid, u32 tid);
/* It is in a system call that sleeps until something happens, and which takes no lock of the C library. */
bool tracee__sleeps(const struct tracee *t);
/* Saves what calls change, and keeps signals waiting. 0 or negative errno. */
int tracee__borrow(struct tracee *t);
/*
 * Calls a function on the stack that ends at `stack`, 0: its own. 0, -ESRCH: it ended meanwhile, -EFAULT: it crashed,
 * -ETIMEDOUT: it had not returned after limit_ns.
 */
int tracee__call(struct tracee *t, u64 function, const u64 *args, u32 n, u64 stack, u64 limit_ns, u64 *result);
/* Everything is as it was, and it goes on; an interrupted system call is made again. Returns for how long it was held, ns. */
u64 tracee__release(struct tracee *t);

#endif
