/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_ENDED_BPF_H
#define SONDE_ENDED_BPF_H

#include "sonde.bpf.h"

/*
 * At sched_process_exit: has this selected process been taken out of the set already? Threads are counted as ended before
 * they come here, so that the last of them to come need not be the last that the kernel counted.
 */
static __always_inline bool process__has_ended(struct task_struct *task)
{
	u32 tgid = task->tgid;
	u64 *started = bpf_map_lookup_elem(&ended, &tgid);

	return started && *started == task->group_leader->start_time;
}

#endif
