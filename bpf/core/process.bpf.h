/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes are recorded, and whose threads a family follows: what programs ask before they do anything else. */
#ifndef SONDE_PROCESS_BPF_H
#define SONDE_PROCESS_BPF_H

#include <bpf/bpf_helpers.h>

#include "maps.h"

static __always_inline u32 process__flags(u32 tgid)
{
	u32 *flags = bpf_map_lookup_elem(&processes, &tgid);

	return flags ? *flags : 0;
}

/* Does the user want this process? To be asked before anything is reserved. */
static __always_inline bool process__is_selected(u32 tgid)
{
	return !filter_on || (process__flags(tgid) & PROCESS_SELECTED);
}

/* Flags of a task, from include/linux/sched.h. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/*
 * Does a family that follows threads follow those of this process? With a filter, of the processes that it selects; else
 * of those with a runtime, or of all processes where the family's option `all` says so.
 */
static __always_inline bool process__followed(u32 tgid, bool all)
{
	if (filter_on)
		return process__flags(tgid) & PROCESS_SELECTED;
	return all || (process__flags(tgid) & PROCESS_RUNTIME);
}

/* The same for a task. A kernel thread has no runtime, and its flag says so without a lookup in a map. */
static __always_inline bool task__followed(struct task_struct *task, bool all)
{
	if (!filter_on && !all && task->flags & PF_KTHREAD)
		return false;
	return process__followed(task->tgid, all);
}

/*
 * For iterators over threads that exist already. They include the threads of a process that the loader introduces, because a
 * process that keeps changing its name or cgroup may be out of the set at the moment when the iterator runs, and its events
 * are recorded whenever it is in.
 */
static __always_inline bool process__introduced(u32 tgid)
{
	return !filter_on || (process__flags(tgid) & (PROCESS_SELECTED | PROCESS_JOINING));
}

static __always_inline bool task__introduced(struct task_struct *task, bool all)
{
	return filter_on ? process__introduced(task->tgid) : task__followed(task, all);
}

/*
 * Is a thread still followed that was introduced? *version is a field of the thread's storage: processes_version when its
 * process was last found to be selected. Without a filter a process is followed until it execs.
 */
static __always_inline bool thread__followed(struct task_struct *task, u32 *version)
{
	u32 now = processes_version;

	if (!filter_on || *version == now)
		return true;
	if (!(process__flags(task->tgid) & PROCESS_SELECTED))
		return false;
	*version = now;
	return true;
}

/* What a program's task storage has for a task, or NULL. Most tasks of a machine have no storage, and one load says so. */
#define task__stored(map, task) ((task)->bpf_storage ? bpf_task_storage_get(map, task, 0, 0) : NULL)

#endif
