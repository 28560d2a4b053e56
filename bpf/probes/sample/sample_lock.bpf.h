/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lock that a thread waits for by a futex. */
#pragma once

#include "core/native.bpf.h"
#include "core/python_memory.bpf.h"
#include "sample.h"

/*
 * The threads that wait for one PyMutex (CPython 3.13 and later) wait on a semaphore each, in a struct wait_entry on
 * their stacks (Python/parking_lot.c): void *park_arg; uintptr_t addr; _PySemaphore sema. `addr` is the mutex's. other:
 * the waiter, if its memory is not the current task's, else NULL.
 */
static __always_inline u64 lock_of(struct task_struct *waiter, struct task_struct *other, u64 futex)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(waiter);
	u32 tgid = waiter->tgid, layout;
	const struct python_process *p;
	const struct python_layout *l;
	u64 lock = 0;

	if (futex - regs->sp >= PARKING_SPAN)
		return futex;
	p = bpf_map_lookup_elem(&python_processes, &tgid);
	if (!p)
		return futex;
	layout = p->at[0].layout;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	if (!l || l->version < 0x030d || native__read(&lock, sizeof(lock), futex - 8, other))
		return futex;
	return lock >= 4096 && !(lock >> 47) ? lock : futex;
}
