/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python stacks from BPF programs. Each function returns the id of the stack's innermost frame (fields of unit
 * `stack`), or 0 if there is no stack: the process is not a Python process, it is not known yet, or its memory could
 * not be read (counted as a loss). A family whose programs call these functions sets .python in its family_host, and
 * its is_runtime accepts CPythons.
 */
#pragma once

#include "core/python_learn.bpf.h"
#include "core/python_walk.bpf.h"

/*
 * A sleepable program (iter.s/task) can read the memory of another task: it defines PYTHON_WALK_TASKS before it
 * includes this file, and can then call python__stack_of_task().
 */

/*
 * The stack of the current thread. If its thread state is not known yet, it is searched for, which is too slow for
 * sched_waking.
 */
static __always_inline u32 python__stack(u32 frames)
{
	return python__walk_current(0, 0, frames);
}

/* The same for a program at an instruction of a CPython. An unknown process is counted as a loss. */
static __always_inline u32 python__stack_here(u32 frames)
{
	return python__known_here() ? python__walk_current(0, 0, frames) : 0;
}

/*
 * The same for a thread that waits for the GIL at `gil` (struct _gil_runtime_state). A thread that has entered
 * several interpreters has a stack in each of them, and while it waits none of them is marked as current.
 */
static __always_inline u32 python__stack_waiting(u64 gil, u32 frames)
{
	return python__known_here() ? python__walk_current(0, gil, frames) : 0;
}

/*
 * The stack of the thread whose PyThreadState is at `state` in the current process. Another thread's stack can change
 * while it is read; it is then counted as torn and the result is 0.
 */
static __always_inline u32 python__stack_of(u64 state, u32 frames)
{
	return state ? python__walk_current(state, 0, frames) : 0;
}

#ifdef PYTHON_WALK_TASKS
/*
 * The stack of another task, stopped or not; pages that are not in memory are fetched. A stack that changes meanwhile
 * is counted as torn. state: the task's PyThreadState; 0: search for it, which takes time in proportion to the number
 * of threads.
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
