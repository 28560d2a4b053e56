/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "sonde.bpf.h"

/*
 * At sched_process_exit: has this selected process been taken out of the set already? The kernel decrements its count
 * of live threads before the tracepoint, so the last thread to reach the tracepoint need not be the one that brought
 * the count to zero.
 */
static __always_inline bool process__has_ended(struct task_struct *task)
{
	u32 tgid = task->tgid;
	u64 *started = bpf_map_lookup_elem(&ended, &tgid);

	return started && *started == task__process_start(task);
}
