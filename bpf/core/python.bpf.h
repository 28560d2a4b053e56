/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python stacks from BPF programs. Both return the id of the stack's innermost frame
 * (fields of unit `stack`), 0 if there is none: no Python, not known, not readable (then counted).
 * A family whose programs call them says so in its family_host (.python), and its `mapped` calls python__mapped().
 */
#ifndef SONDE_PYTHON_BPF_H
#define SONDE_PYTHON_BPF_H

#include "core/python_walk.bpf.h"

/*
 * A sleepable program (iter.s/task), which can read another task's memory, defines PYTHON_WALK_TASKS before it includes
 * this, and gets python__stack_of_task().
 */

/* Of the current thread, whose thread state is looked for (and remembered) if need be: not in sched_waking. */
static __always_inline u32 python__stack(u32 frames)
{
	return python__walk_current(0, 0, frames);
}

/*
 * The same for a thread that waits for a GIL, at `gil` (struct _gil_runtime_state): a thread that has entered several
 * interpreters has a stack in each, and while it waits none is marked as the current one.
 */
static __always_inline u32 python__stack_waiting(u64 gil, u32 frames)
{
	return python__walk_current(0, gil, frames);
}

/*
 * Of the thread whose PyThreadState is at `state` in the current process: another thread's stack may be torn while
 * that thread runs, then 0.
 */
static __always_inline u32 python__stack_of(u64 state, u32 frames)
{
	return state ? python__walk_current(state, 0, frames) : 0;
}

#ifdef PYTHON_WALK_TASKS
/*
 * Of another task, stopped or not: pages that are not in memory are fetched. A stack that changes meanwhile is counted
 * as torn. state: its PyThreadState, 0: it is looked for, which takes as long as the process has threads.
 */
static __always_inline u32 python__stack_of_task(struct task_struct *task, u64 state, u32 frames)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct python_thread *t = bpf_task_storage_get(&python_threads, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct python_known *known = bpf_task_storage_get(&python_knowns, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 id;

	if (!t || !known) {
		loss__count(0, LOSS_STORAGE, bpf_ktime_get_ns());
		return 0;
	}
	t->busy = 1;
	id = python__walk_thread(t, known, task, state, 0, frames, task);
	t->busy = 0;
	return id;
}
#endif

#endif
