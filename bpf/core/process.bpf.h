/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes are recorded, and whose threads a family follows. Programs check this before anything else. */
#pragma once

#include <bpf/bpf_helpers.h>

#include "maps.h"

static __always_inline u32 process__flags(u32 tgid)
{
	u32 *flags = bpf_map_lookup_elem(&processes, &tgid);

	return flags ? *flags : 0;
}

/* Do the filters select this process, whether or not it is in a capture range? */
static __always_inline bool process__is_armed(u32 tgid)
{
	return !filter_on || (process__flags(tgid) & PROCESS_SELECTED);
}

/* Does the process have these flags? */
static __always_inline bool process__has(u32 tgid, u32 need)
{
	return !need || (process__flags(tgid) & need) == need;
}

/*
 * Is what this process does recorded now? The filters select it and, with --capture-range, it is in such a range.
 * Programs call this before they reserve anything.
 */
static __always_inline bool process__is_selected(u32 tgid)
{
	return process__has(tgid, record_need);
}

/* The flags that a process needs while events of this kind, whose id is a constant, are recorded. */
static __always_inline u32 event__need(u16 id)
{
	return kind_need[EVENT_FAMILY(id)][id & (KINDS_MAX - 1)];
}

/* With --capture-range: is the process, which the caller knows to be followed, in such a range? */
static __always_inline bool process__is_captured(u32 tgid)
{
	return !(record_need & PROCESS_CAPTURED) || (process__flags(tgid) & PROCESS_CAPTURED);
}

/* A capture range of a process begins or ends. */
int process__set_captured(u32 tgid, u32 captured);

static __always_inline bool recording__is_suspended(void)
{
	u32 zero = 0, *suspended = bpf_map_lookup_elem(&recording_suspended, &zero);

	return suspended && *suspended;
}

/* Flags of a task, from include/linux/sched.h. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#define TS_COMPAT 2 /* arch/x86/include/asm/thread_info.h */

/* Is the task in a system call of the 32-bit kind? Its arguments and stack are then those of 32-bit code. */
static __always_inline bool task__in_32bit_call(const struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

/*
 * Facts about the task's process. A program that loads a pointer through a trusted pointer makes the verifier search
 * the names of all types of the kernel, which takes up to 1 ms for each load. So programs that run rarely read such
 * fields by a helper.
 */
static __always_inline s32 task__live_threads(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, live.counter);
}

static __always_inline u64 task__process_start(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_time);
}

/*
 * Does a family that follows threads follow those of this process? With a filter it follows the processes that the
 * filter selects, else those with a runtime, or all processes with the family's option `all`.
 */
static __always_inline bool process__followed(u32 tgid, bool all)
{
	if (filter_on)
		return process__flags(tgid) & PROCESS_SELECTED;
	return all || (process__flags(tgid) & PROCESS_RUNTIME);
}

/* The same for a task. A kernel thread has no runtime, and its task flag shows this without a map lookup. */
static __always_inline bool task__followed(struct task_struct *task, bool all)
{
	if (!filter_on && !all && task->flags & PF_KTHREAD)
		return false;
	return process__followed(task->tgid, all);
}

/* The same without threads of the kernel and the idle tasks, also where a filter or `all` selects them. */
static __always_inline bool user_task__followed(struct task_struct *task, bool all)
{
	return task->pid && !(task->flags & PF_KTHREAD) && process__followed(task->tgid, all);
}

/*
 * Is this process selected, or are its existing threads being passed to the families? For iterators over these threads:
 * a process that keeps changing its name or cgroup may be unselected when the iterator runs, and its events are
 * recorded whenever it is selected.
 */
static __always_inline bool process__passed_on(u32 tgid)
{
	return !filter_on || (process__flags(tgid) & (PROCESS_SELECTED | PROCESS_PASSED_ON));
}

static __always_inline bool task__passed_on(struct task_struct *task, bool all)
{
	return filter_on ? process__passed_on(task->tgid) : task__followed(task, all);
}

/*
 * Is a thread that a family follows recorded now? For a thread with storage, which saves the lookup: *version is a
 * field of the storage, processes_version when its process was last found to be.
 */
static __always_inline bool task__still_followed(struct task_struct *task, bool all, u32 *version)
{
	u32 now = processes_version;

	if (*version == now)
		return true;
	if (!task__followed(task, all) || !process__is_captured(task->tgid))
		return false;
	*version = now;
	return true;
}

/*
 * Is a thread that an iterator passed to the family recorded now? *version is a field of the thread's storage:
 * processes_version when its process was last found to be. Without a filter a process is followed until it execs.
 */
static __always_inline bool thread__followed(struct task_struct *task, u32 *version)
{
	u32 now = processes_version;

	if (!record_need || *version == now)
		return true;
	if (!process__is_selected(task->tgid))
		return false;
	*version = now;
	return true;
}

/* The value that a task storage has for a task, or NULL. Most tasks have no storage at all, which one load shows. */
#define task__stored(map, task) ((task)->bpf_storage ? bpf_task_storage_get(map, task, 0, 0) : NULL)
