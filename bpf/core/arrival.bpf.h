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

/* When a thread that is on its CPU, or leaves it now, got it: not before since, when it was off. ns, CLOCK_MONOTONIC */
static __always_inline u64 missed_arrival_time(struct task_struct *task, u64 since, u64 now)
{
	u64 ran;

	if (!has_run_delay())
		return now;
	ran = task->se.cfs_rq->rq->clock - task->sched_info.last_arrival;
	return ran < now - since ? now - ran : since;
}

#endif
