/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of each thread that sampling follows. */
#pragma once

#include "core/file.bpf.h"
#include "sample.h"

/* Limit of the stacks that are read when a thread wakes others: sample_wake.bpf.c */
struct wake_limit {
	u64 refilled; /* time of the last increase of `left` */
	u32 left; /* stacks that may still be read */
};

struct sample_thread {
	u64 since; /* start of the off-CPU interval; 0: on a CPU, or unknown */
	u64 exec; /* its time on CPUs when it left one for the last time, ns */
	u64 start, end; /* of an off-CPU interval whose stack has not been read yet; end 0: none */
	s32 nr; /* the system call in which it left the CPU for the last time; -1: it was in none */
	u32 state;
	u32 followed; /* processes_version when its process was last found to be followed */
	u8 iowait;
	u8 before; /* since is the time when tracing, or the slice of time, began */
	u8 start_before;
	u8 reason;
	u8 stacks; /* of its intervals, at most FIRST_STACKS */
	u8 gil_stacked; /* a wait for the GIL had a stack */
	u8 unstacked; /* the interval from start to end gets no stack */
	u8 kept; /* its stack is in sample_kept */
	u8 returns; /* its system call has been executed */
	u8 paused; /* it has not been switched in the current slice of time */
	struct wake_limit short_wakes, long_wakes; /* for stacks of this thread when it wakes others */
	u64 stack_due; /* ns of its intervals shorter than SAMPLE_STACK_NS until one gets a stack */
	u64 stacked_calls; /* of these system calls it had an interval with a stack; bit: number modulo 64 */
	u64 short_ns; /* sum of its waits below the threshold since one of them got a stack */
	struct file_cache file; /* the file it waited for last */
};

struct sample_threads_map {
	TASK_STORAGE(struct sample_thread);
};

extern struct sample_threads_map sample_threads SEC(".maps");
