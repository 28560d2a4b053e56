/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of sampling: the code in which threads spend CPU time, and in which they are off the CPU. docs/sampling.md
 * explains it. */
#pragma once

#include "core/event.h"
#include "core/file.h"
#include "core/native.h"
#include "core/stack.h"
#include "syscall_nr.h"

FAMILY(sample, 0x0c, FAMILY_USUAL, "where CPU time goes (-F), and where threads wait (--off-cpu)");

enum sample_gil {
	SAMPLE_GIL_UNKNOWN = 0, /* no Python, a thread without a thread state, or not readable */
	SAMPLE_GIL_HELD = 1, /* by this thread */
	SAMPLE_GIL_NOT_HELD = 2,
};

struct sample_cpu {
	struct event event;
	u64 period UNIT(ns) DOC("CPU time that the sample represents");
	u32 stack UNIT(stack) DOC("0: not known");
	enum sample_gil gil DOC("did the thread hold its interpreter's GIL");
	u8 kernel DOC("1: the thread was in the kernel, called or interrupted from the stack's innermost frame");
	u8 in_call DOC("1: it was in a system call; in the kernel without one it handled a page fault or an interrupt");
} EVENT(sample_cpu, 0x0c01, "a thread was on a CPU when the sampling clock ticked");

enum sample_reason {
	SAMPLE_OTHER = 0,
	SAMPLE_PREEMPTED = 1, /* it was runnable */
	SAMPLE_GIL = 2, /* the wait in take_gil */
	SAMPLE_LOCK = 3, /* a futex: a lock, a condition, a thread's end */
	SAMPLE_SLEEP = 4, /* a sleep that the thread requested */
	SAMPLE_POLL = 5, /* select, poll, epoll */
	SAMPLE_DISK = 6, /* uninterruptible, for input or output */
	SAMPLE_BLOCKED = 7, /* uninterruptible, for something else in the kernel */
	SAMPLE_IO = 8, /* read, write, send, receive and the like: pipes, sockets, terminals */
	SAMPLE_CHILD = 9, /* for a child process */
	SAMPLE_FAULT = 10, /* a page fault */
	SAMPLE_STOPPED = 11, /* by a signal or a debugger */
	SAMPLE_SIGNAL = 12, /* it waited for a signal */
};

/*
 * An off-CPU interval of at least so many ns gets a stack. Of a thread's shorter ones from the threshold on, the one at
 * which their sum reaches this number gets one (docs/sampling.md, "Off the CPU").
 */
#define SAMPLE_STACK_NS 5000000

struct sample_off {
	struct span span;
	u32 stack UNIT(stack) DOC("0: not known");
	enum sample_reason reason;
	enum syscall_nr nr DOC("the system call that the thread was in, if in_call is 1");
	u8 in_call DOC("1: it was in a system call");
	u32 file DOC(
		"id of the call's file (event syscall_file); for poll and select if they wait for a single one; 0: none");
	u64 futex UNIT(hex) DOC("futex that the call waits on; 0: it waits on no futex, or on one of the GIL");
	s64 timeout UNIT(ns) DOC("timeout of the call; -1: no limit; 0: not known, or the call has no timeout");
	u64 lock UNIT(hex) DOC("what is at that address, as in sample_wake");
	u32 lock_owner DOC(
		"of an open wait for a futex: the thread that held the lock, by its number in the process's pid namespace; 0: not known");
	u8 private DOC("of an open wait for a futex: 1: only threads of this process can end it");
	u8 estimated DOC(
		"1: the stack is that of another interval of the thread with the same reason and call, and file or lock if possible");
} EVENT(sample_off, 0x0c02,
	"a thread was off the CPU for longer than --off-cpu's threshold; of its shorter waits, one for each 5 ms of them");

struct sample_clock {
	struct event event;
	u64 period UNIT(ns) DOC("between two ticks of a CPU; 0: no -F");
	u64 threshold UNIT(ns) DOC("what --off-cpu begins with; 0: no --off-cpu");
	u64 ticks DOC("of the clock so far, on all CPUs");
	u64 missed DOC("that are missing so far: the hypervisor had the CPU, or the kernel delayed them");
	u64 unstacked DOC("samples so far whose stack could not be read");
} EVENT(sample_clock, 0x0c03, "how sampling went");

enum sample_wake_how {
	SAMPLE_WAKE_FUTEX = 1, /* the waker called futex() on the address that the woken thread waited on */
	SAMPLE_WAKE_EXIT = 2, /* the waker ended, as pthread_join() waits for */
};

struct sample_wake {
	struct event event;
	u64 since UNIT(moment) DOC("when the woken thread left the CPU");
	u64 futex UNIT(hex) DOC("address that the woken thread waited on");
	u64 lock UNIT(hex) DOC(
		"address of the lock: the futex, or for a futex on the waiter's stack (PyMutex) the address stored before it");
	u32 stack UNIT(stack) DOC("of the waker; 0: not known");
	u32 woken_pid UNIT(task) DOC("process of the thread whose wait ended");
	u32 woken_tid UNIT(task) DOC("that thread");
	enum sample_wake_how how;
	u8 bounded DOC("1: the waker's stack was not read, because it has ended many waits recently");
	u32 value UNIT(hex)
		DOC("value that the futex had to have for the wait to begin; 2 for locks of many libraries");
} EVENT(sample_wake, 0x0c04, "a thread ended another thread's long wait for a futex");

struct sample_tasks {
	struct event event;
	u64 period UNIT(ns) DOC("time that the reading represents: since the previous reading");
	u64 object UNIT(hex)
		DOC("object whose method the innermost coroutine runs, such as an asyncio.Lock; of one of these tasks");
	u32 stack UNIT(stack) DOC("coroutines that the tasks wait in");
	u32 holder UNIT(stack)
		DOC("coroutines of a task inside of `async with` of the lock that these wait for; 0: none was found");
	u32 tasks DOC("number of these tasks");
	u32 begun DOC("number of these tasks that did not wait in the same state at the reading before");
	u32 all DOC("number of all tasks of the process");
	u8 serves DOC("1: the outermost coroutine got a stream as an argument, as for each client of a server");
	u64 peer_high UNIT(hex) DOC("address of the peer that the last one, the holder, or without one a task of these "
				    "waits for, first half; IPv4 is ::ffff:a.b.c.d");
	u64 peer_low UNIT(hex) DOC("that address, second half");
	u32 last UNIT(stack)
		DOC("coroutines of the last one of the tasks that the holder waits for, one for the other; 0: none");
	u16 peer_port DOC("the peer's port; 0: none was found");
} EVENT(sample_tasks, 0x0c05,
	"asyncio tasks that waited in the same coroutines, by the process's memory (docs/sampling.md)");

/* The frames of CPython's parking lot between a waiter's semaphore and its stack pointer are smaller. */
#define PARKING_SPAN 1024

#define RAW_SAMPLE RAW_OF(0x0c)
#define RAW_WAKE   RAW_SECOND_OF(0x0c)
#define RAW_BUSY   RAW_THIRD_OF(0x0c)

/* Sent by the programs to the worker (sample.c), which makes the events above of it. Not in the trace. */
struct raw_sample {
	struct event event;
	u64 start; /* 0: a sample of the clock */
	u64 futex; /* first argument of the system call */
	u64 lock; /* as in sample_off, of a futex */
	s64 timeout; /* as in sample_off */
	u32 file;
	u32 realtime; /* 1: the timeout is a moment of CLOCK_REALTIME */
	u32 python; /* the Python stack, 0: none */
	u32 parent; /* process that forked this one: a short-lived child has its mappings */
	s32 nr; /* number of the system call; -1: in none */
	u8 gil; /* enum sample_gil */
	u8 gil_wait; /* 1: the call waits for something of the GIL */
	u8 kernel;
	u8 reason; /* from the thread's state; SAMPLE_OTHER if the call decides */
	u8 unstacked; /* 1: the stack was not read, because the interval is short */
	u8 private; /* as in sample_off */
	u32 lock_owner; /* as in sample_off */
	struct native_stack native;
};

/* A process that is not followed uses much CPU time, or its threads often wait. */
struct raw_busy {
	struct event event;
};

/* The raw record of a sample_wake. */
struct raw_wake {
	struct event event;
	u64 since, futex, lock;
	u32 woken_pid, woken_tid;
	u32 value;
	u32 python; /* the Python stack, 0: none */
	u32 parent; /* as in raw_sample */
	u8 how;
	u8 bounded;
	struct native_stack native; /* ip 0: not taken */
};
