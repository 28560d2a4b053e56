/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python stacks from BPF programs. Each function returns the id of the stack's innermost frame (fields of unit `stack`), or
 * 0 if there is no stack: the process is not a Python, or it is not known yet, or its memory could not be read (counted).
 * A family whose programs call them sets .python in its family_host, and its `mapped` calls python__mapped().
 */
#ifndef SONDE_PYTHON_BPF_H
#define SONDE_PYTHON_BPF_H

#include "core/python_learn.bpf.h"
#include "core/python_walk.bpf.h"

/*
 * A sleepable program (iter.s/task), which can read another task's memory, defines PYTHON_WALK_TASKS before it includes
 * this, and gets python__stack_of_task().
 */

/* The stack of the current thread. Its thread state is searched for if it is not known yet, which sched_waking must not do. */
static __always_inline u32 python__stack(u32 frames)
{
	return python__walk_current(0, 0, frames);
}

/* The same for a program at an instruction of a CPython. A process that is not known is counted. */
static __always_inline u32 python__stack_here(u32 frames)
{
	return python__known_here() ? python__walk_current(0, 0, frames) : 0;
}

/*
 * The same for a thread that waits for the GIL at `gil` (struct _gil_runtime_state). A thread that has entered several
 * interpreters has a stack in each of them, and while it waits none is marked as the current stack.
 */
static __always_inline u32 python__stack_waiting(u64 gil, u32 frames)
{
	return python__known_here() ? python__walk_current(0, gil, frames) : 0;
}

/*
 * The stack of the thread whose PyThreadState is at `state` in the current process. The stack of another thread can change
 * while it is read; then it is counted as torn and the result is 0.
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
