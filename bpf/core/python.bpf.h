/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python stacks from BPF programs. Both return the id of the stack's innermost frame
 * (fields of unit `stack`), 0 if there is none: no Python, not known, not readable (then counted).
 * A family whose programs call them says so in its family_host (.python), and its `mapped` calls python__mapped().
 */
#ifndef SONDE_PYTHON_BPF_H
#define SONDE_PYTHON_BPF_H

#include "core/python_walk.bpf.h"

/* Of the current thread, whose thread state is looked for (and remembered) if need be: not in sched_waking. */
static __always_inline u32 python__stack(u32 frames)
{
	return python__walk_current(0, frames);
}

/*
 * Of the thread whose PyThreadState is at `state` in the current process: another thread's stack may be torn while
 * that thread runs, then 0.
 */
static __always_inline u32 python__stack_of(u64 state, u32 frames)
{
	return state ? python__walk_current(state, frames) : 0;
}

#endif
