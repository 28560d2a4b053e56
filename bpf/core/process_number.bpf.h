/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "core/sonde.bpf.h"

/* The number of a task in its own, innermost pid namespace. */
static __always_inline u32 task__ns_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid *number;
	int nr = 0;

	if (level > 32) /* MAX_PID_NS_LEVEL; a task that has been reaped has no pid */
		return 0;
	number = (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	bpf_core_read(&nr, sizeof(nr), &number->nr);
	return nr;
}
