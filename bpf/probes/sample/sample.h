/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of sampling: where threads spend CPU time, and where they were while they had none. docs/sampling.md is the essay. */
#ifndef SONDE_SAMPLE_H
#define SONDE_SAMPLE_H

#include "core/event.h"
#include "core/native.h"
#include "core/stack.h"
#include "syscall_nr.h"

FAMILY(sample, 0x0c, FAMILY_ASKED, "where CPU time goes (-F), and where threads wait (--off-cpu)");

enum sample_gil {
	SAMPLE_GIL_UNKNOWN = 0, /* no Python, a thread without a thread state, or not readable */
	SAMPLE_GIL_HELD = 1, /* by this thread */
	SAMPLE_GIL_NOT_HELD = 2,
};

struct sample_cpu {
	struct event event;
	u64 period UNIT(ns) DOC("CPU time that the sample stands for");
	u32 stack UNIT(stack) DOC("0: not known");
	enum sample_gil gil DOC("did the thread hold its interpreter's GIL");
	u8 kernel DOC("1: the thread was in the kernel, called or interrupted from the stack's innermost frame");
} EVENT(sample_cpu, 0x0c01, "a thread was on a CPU when the sampling clock ticked");

enum sample_reason {
	SAMPLE_OTHER = 0,
	SAMPLE_PREEMPTED = 1, /* it wanted to run */
	SAMPLE_GIL = 2, /* the wait in take_gil */
	SAMPLE_LOCK = 3, /* a futex: a lock, a condition, a thread's end */
	SAMPLE_SLEEP = 4, /* it asked to sleep */
	SAMPLE_POLL = 5, /* select, poll, epoll */
	SAMPLE_DISK = 6, /* uninterruptible, for input or output */
	SAMPLE_BLOCKED = 7, /* uninterruptible, for something else in the kernel */
	SAMPLE_IO = 8, /* read, write, send, receive and the like: pipes, sockets, terminals */
	SAMPLE_CHILD = 9, /* for a child process */
	SAMPLE_FAULT = 10, /* a page fault */
	SAMPLE_STOPPED = 11, /* by a signal or a debugger */
	SAMPLE_SIGNAL = 12, /* it waited for a signal */
};

struct sample_off {
	struct span span;
	u32 stack UNIT(stack) DOC("0: not known");
	enum sample_reason reason;
	enum syscall_nr nr DOC("the system call it was in, if in_call");
	u8 in_call DOC("1: it was in a system call");
} EVENT(sample_off, 0x0c02, "a thread was off the CPU for longer than --off-cpu's threshold");

struct sample_clock {
	struct event event;
	u64 period UNIT(ns) DOC("between two ticks of a CPU; 0: no -F");
	u64 threshold UNIT(ns) DOC("what --off-cpu begins with; 0: no --off-cpu");
	u64 ticks DOC("of the clock so far, on all CPUs");
	u64 missed DOC("that did not come so far: the hypervisor had the CPU, or the kernel put them off");
	u64 unstacked DOC("samples so far whose stack could not be read");
} EVENT(sample_clock, 0x0c03, "how sampling went");

#define RAW_SAMPLE RAW_OF(0x0c)

/* What the programs send to the loader (sample.c), which makes the events above of it. Not in the trace. */
struct raw_sample {
	struct event event;
	u64 start; /* 0: of the clock */
	u64 futex; /* first argument of the system call */
	u32 python; /* the Python stack, 0: none */
	u32 parent; /* process that forked this one: a short-lived child has its mappings */
	s32 nr; /* system call, -1: in none */
	u8 gil; /* enum sample_gil */
	u8 gil_wait; /* 1: the call waits for something of the GIL */
	u8 kernel;
	u8 reason; /* by its state alone: SAMPLE_OTHER if the call says why */
	struct native_stack native;
};

#endif
