/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python stacks from BPF programs. Both return the id of the stack's innermost frame
 * (fields of unit `stack`), 0 if there is none: no Python, not known, not readable (then counted).
 */
#ifndef SONDE_PYTHON_BPF_H
#define SONDE_PYTHON_BPF_H

#include "core/sonde.bpf.h"
#include "core/stack.h"

/* Of the current thread, whose thread state is looked for (and remembered) if need be: not in sched_waking. */
static __always_inline u32 python__stack(u32 frames)
{
	return 0;
}

/*
 * Of the thread whose PyThreadState is at `state` in the current process: another thread's stack may be torn while
 * that thread runs, then 0.
 */
static __always_inline u32 python__stack_of(u64 state, u32 frames)
{
	return 0;
}

#endif
