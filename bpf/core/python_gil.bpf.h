/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Does a thread hold its interpreter's GIL? The memory that is read is a struct _gil_runtime_state. */
#pragma once

#include "core/gil_held.h"
#include "core/python_walk.bpf.h"

#define GIL_SIZE 256 /* struct _gil_runtime_state and more: conditions and mutexes */

/* The address of the GIL of a thread state in the current process; 0: it is not known. */
static __always_inline u64 python__gil_of_state(u64 state, u64 runtime, const struct python_layout *l)
{
	return python__gil_of(l->interp_gil ? python__word(state + l->state_interp, NULL) : 0, runtime, l, NULL);
}

/* The address of the GIL of a thread of the current process, as far as its thread state was found before; else 0. */
static __always_inline __attribute__((unused)) u64 python__known_gil(struct task_struct *task)
{
	const struct python_layout *l = NULL;
	u64 runtime = 0, state = python__last_state(task, &runtime, &l);

	return state && l ? python__gil_of_state(state, runtime, l) : 0;
}

/*
 * Does the current thread, whose Python stack was just walked, hold the GIL? `gil`, if not NULL, gets the GIL's
 * address if the answer is known.
 */
static __always_inline u32 python__gil_held(struct task_struct *task, u64 *gil)
{
	const struct python_layout *l = NULL;
	u64 runtime = 0, state = python__last_state(task, &runtime, &l);
	u64 at, head[3]; /* interval, last_holder, locked (an int) */

	if (!state || !l)
		return GIL_HELD_UNKNOWN;
	at = python__gil_of_state(state, runtime, l);
	if (!at || bpf_probe_read_user(head, sizeof(head), (const void *)at))
		return GIL_HELD_UNKNOWN;
	if (gil)
		*gil = at;
	return (u32)head[2] == 1 && head[1] == state ? GIL_HELD_YES : GIL_HELD_NO;
}
