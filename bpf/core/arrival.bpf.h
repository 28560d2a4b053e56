/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time at which a thread got its CPU, from the kernel's own accounting. The kernel may skip a program at
 * sched_switch (recursion), or not run it at all for some tasks, and the switch is then missing.
 */
#pragma once

#include "sonde.bpf.h"

/* True with CONFIG_SCHED_INFO and CONFIG_FAIR_GROUP_SCHED; CO-RE makes this a constant when the program is loaded. */
static __always_inline bool has_run_delay(void)
{
	return bpf_core_field_exists(((struct task_struct *)0)->sched_info.last_queued) &&
	       bpf_core_field_exists(((struct sched_entity *)0)->cfs_rq);
}

/*
 * Are both pointers NULL? The barrier keeps the compiler from combining the two comparisons by a bitwise or of the
 * pointers, which the verifier refuses.
 */
#define BOTH_NULL(one, other)               \
	({                                  \
		bool __none = !(one);       \
		if (__none) {               \
			barrier_var(other); \
			__none = !(other);  \
		}                           \
		__none;                     \
	})

/* The clock of the run queue that a thread is on, in ns; 0: unknown. Read it once a program, see iter__write(). */
static __always_inline u64 run_queue_clock(struct task_struct *task)
{
	return has_run_delay() ? task->se.cfs_rq->rq->clock : 0;
}

/*
 * The time (ns, CLOCK_MONOTONIC) at which a thread got its CPU, for a thread that runs or that leaves its CPU now.
 * The result is not before `since`, a time at which the thread was off its CPU.
 */
static __always_inline u64 missed_arrival_time(struct task_struct *task, u64 clock, u64 since, u64 now)
{
	u64 ran;

	if (!has_run_delay())
		return now;
	ran = clock - task->sched_info.last_arrival;
	return ran < now - since ? now - ran : since;
}
