/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Does a thread hold its interpreter's GIL? The memory that is read is a struct _gil_runtime_state. */
#ifndef SONDE_PYTHON_GIL_BPF_H
#define SONDE_PYTHON_GIL_BPF_H

#include "core/gil_held.h"
#include "core/python_walk.bpf.h"

#define GIL_SIZE 256 /* struct _gil_runtime_state and more: conditions and mutexes */

/*
 * Does the current thread, whose Python stack was just walked, hold the GIL? `gil`, if not NULL, gets the GIL's
 * address if the answer is known.
 */
static __always_inline u32 python__gil_held(struct task_struct *task, u64 *gil)
{
	struct python_thread *t = bpf_task_storage_get(&python_threads, task, 0, 0);
	u32 tgid = task->tgid, layout;
	const struct python_process *p = bpf_map_lookup_elem(&python_processes, &tgid);
	const struct python_layout *l;
	u64 at, head[3]; /* interval, last_holder, locked (an int) */

	if (!t || !p || t->process != p->id || !t->state)
		return GIL_HELD_UNKNOWN;
	layout = p->layout;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	if (!l)
		return GIL_HELD_UNKNOWN;
	if (l->interp_gil)
		at = python__word(python__word(t->state + l->state_interp, NULL) + l->interp_gil, NULL);
	else
		at = l->runtime_gil ? p->runtime + l->runtime_gil : 0;
	if (!at || bpf_probe_read_user(head, sizeof(head), (const void *)at))
		return GIL_HELD_UNKNOWN;
	if (gil)
		*gil = at;
	return (u32)head[2] == 1 && head[1] == t->state ? GIL_HELD_YES : GIL_HELD_NO;
}

#endif
