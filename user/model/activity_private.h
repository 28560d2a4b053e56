/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by activity.c, which makes intervals, and activity_load.c, which loads the spans that they are made of. */
#pragma once

#include "model/activity.h"
#include "model/cpu_sums.h"
#include "model/osrt_files.h"
#include "model/span_list.h"

/* A span on or off a CPU, as in struct sched_span */
struct sched_time {
	u64 from, to;
	u64 wake;
	struct thread_key waker, current; /* of struct sched_span */
	u32 state, stopper;
};

struct sched_times {
	struct sched_time *spans; /* by their start and by their end, once sorted */
	u32 n;
	u32 current; /* index of the first span that ends after the current time */
};

struct activity_thread {
	struct sched_times on_cpu, off_cpu;
	struct span_list gil; /* kind: enum gil_holding, thread: the holder, detail: its stack; also of later windows */
	struct span_list off_stacks; /* detail: the stack */
	u64 emitted_until; /* intervals were emitted up to this time; 0: none was */
	bool ended; /* the thread ended before the current window */
	u64 span_from; /* start of the scheduler span that the last interval was in */
	u32 last_reason;
};

struct activity {
	struct query q; /* of the current window */
	const struct query *selected;
	u32 flags;
	bool has_sched; /* the trace has scheduler events */
	bool chosen; /* threads were added */
	struct lock_futexes *locks;
	struct waits *waits;
	struct osrt_files *files; /* NULL: no details are requested */
	struct gil_model *gil; /* NULL: not read yet */
	u64 gil_to; /* it has been read up to this window's end; 0: it has to be read anew */
	struct map threads; /* struct thread_key -> struct activity_thread */
	bool has_whole; /* quotas and lost were read */
	struct map quotas; /* u32 pid -> struct span_list: when its cgroup's quota was used up in most periods */
	struct span_list lost; /* when scheduler events were lost */
	struct cpu_sums cpus;
};

void activity_thread__forget(struct activity_thread *t);
