/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All causes that an interval of a thread's activity may have: what the kernel's and the probes' records state of this
 * moment. What the time means is an enum finding_kind (findings/finding.h), which stacks and the other time of the
 * thread decide, too: a poll may wait for a peer or for something to do.
 */
#pragma once

#include "core/types.h"

enum activity_cause {
	/* of a running thread */
	ACTIVITY_ON_CPU,
	/* of a runnable one */
	ACTIVITY_CPU, /* waits for a CPU while other threads use them */
	ACTIVITY_QUOTA, /* waits for a CPU in a second in which its cgroup's quota was used up in most periods */
	/* of a thread during a call or a wait that a family recorded; the thread may also run during it */
	ACTIVITY_GIL,
	ACTIVITY_LOCK, /* a futex that is used as a lock */
	ACTIVITY_CONDITION, /* another futex: a condition, a semaphore, a thread's end */
	ACTIVITY_CUDA, /* a call of the CUDA runtime or driver */
	ACTIVITY_CUDA_SYNC, /* a CUDA call that waits for a device */
	ACTIVITY_NCCL,
	ACTIVITY_GC, /* Python's garbage collection */
	ACTIVITY_LIBRARY, /* a call of another library */
	ACTIVITY_DISK,
	ACTIVITY_FAULT, /* a page fault that reads from a disk */
	ACTIVITY_RECLAIM, /* the kernel reclaims or compacts memory, because too little is free */
	ACTIVITY_CONNECT, /* a connection is being made */
	/* of a thread in a system call, whose name decides which of these it is */
	ACTIVITY_SLEEP, /* nanosleep and the like */
	ACTIVITY_EVENTS, /* poll, accept, wait4, ..: waits for something to do */
	ACTIVITY_FUTEX, /* a futex, where family lock was not recorded: a lock or a condition */
	ACTIVITY_SEND, /* connect, sendto, .. */
	ACTIVITY_RECEIVE, /* recvfrom, .. */
	ACTIVITY_SYNC, /* fsync, .. */
	ACTIVITY_TRANSFER, /* read, write, ..: what the thread waits for depends on the file */
	ACTIVITY_SYSCALL, /* any other system call */
	/* of a blocked thread that was in no recorded call: only the scheduler's state is known */
	ACTIVITY_ASLEEP,
	ACTIVITY_UNINTERRUPTIBLE,
	ACTIVITY_STOPPED, /* by a signal */
	ACTIVITY_TRACED, /* stopped by a tracer, such as a debugger */
	ACTIVITY_FROZEN, /* with its cgroup, or all processes for suspend */
	/* of a thread whose state is unknown */
	ACTIVITY_NOT_RECORDED, /* the scheduler was not recorded, or not at this time (record --cost-limit) */
	ACTIVITY_LOST, /* scheduler events of this time were lost */
	ACTIVITY_UNOBSERVED, /* the thread was not followed in this time */
	ACTIVITY_CAUSES
};

/* Returns a text such as "waiting for a CPU"; NULL: reports print the name of the call instead */
const char *activity_cause__text(enum activity_cause cause);
/* Returns the cause of intervals in a system call. name: without SYS_, such as "futex" */
enum activity_cause activity_cause__of_syscall(const char *name);
/* Returns the cause of intervals in a function of the CUDA runtime or driver. name: such as "cudaMemcpy" */
enum activity_cause activity_cause__of_cuda(const char *name);
