/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel may skip a program at sched_switch (recursion), or not run it at all for some tasks. Its
 * own books then say when a thread got its CPU.
 */
#ifndef SONDE_ARRIVAL_BPF_H
#define SONDE_ARRIVAL_BPF_H

#include "sonde.bpf.h"

/* CONFIG_SCHED_INFO and CONFIG_FAIR_GROUP_SCHED; load time turns this into a constant */
static __always_inline bool has_run_delay(void)
{
	return bpf_core_field_exists(((struct task_struct *)0)->sched_info.last_queued) &&
	       bpf_core_field_exists(((struct sched_entity *)0)->cfs_rq);
}

/*
 * Are both pointers NULL? The compiler would combine them by a bitwise or, which the verifier refuses, if the second one were
 * known not to change before it is compared.
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

/* The clock of the run queue that a thread is on, ns; 0: unknown. To be read once a program, see iter__write(). */
static __always_inline u64 run_queue_clock(struct task_struct *task)
{
	return has_run_delay() ? task->se.cfs_rq->rq->clock : 0;
}

/* When a thread that is on its CPU, or leaves it now, got it: not before since, when it was off. ns, CLOCK_MONOTONIC */
static __always_inline u64 missed_arrival_time(struct task_struct *task, u64 clock, u64 since, u64 now)
{
	u64 ran;

	if (!has_run_delay())
		return now;
	ran = clock - task->sched_info.last_arrival;
	return ran < now - since ? now - ran : since;
}

#endif
