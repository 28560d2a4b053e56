/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of sample.bpf.c: where they are made, and the fields that both kinds have. Included once. */
#pragma once

#include "core/native.bpf.h"
#include "core/python.bpf.h"
#include "core/python_gil.bpf.h"
#include "sample.h"

/* include/linux/sched.h; the same numbers from 6.1 to 6.18 */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_NOLOAD	     0x0400
#define TASK_FROZEN	     0x8000

/* Too large for the stack. One for each program, because the clock's program interrupts the other. */
enum { SCRATCH_CLOCK, SCRATCH_OFF, SCRATCH_OPEN, SCRATCHES };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, u32);
	__type(value, struct raw_sample);
} sample_scratch SEC(".maps");

/*
 * A record of the thread's own: with sample_back the stack that it had when it left the CPU from its own code, else the
 * record that is being filled by sample_scheduled: that can be preempted, so a record of the CPU would not do.
 */
struct {
	TASK_STORAGE(struct raw_sample);
} sample_kept SEC(".maps");

static __always_inline struct raw_sample *scratch(u32 which)
{
	return bpf_map_lookup_elem(&sample_scratch, &which);
}

/* If the thread waits for a futex of the GIL it is in take_gil, or in the forced switch of drop_gil. */
static __always_inline void read_gil(struct raw_sample *raw, struct task_struct *task)
{
	u64 gil = 0;

	_Static_assert((int)SAMPLE_GIL_HELD == GIL_HELD_YES && (int)SAMPLE_GIL_NOT_HELD == GIL_HELD_NO, "one enum");
	raw->gil = python__gil_held(task, &gil);
	raw->gil_wait = gil && raw->nr == SYS_futex && raw->futex - gil < GIL_SIZE;
}

/* Fills the fields that both kinds of records have, but no stacks. Returns false if the thread runs 32-bit code. */
static __always_inline bool fill_call(struct raw_sample *raw, struct task_struct *task, u64 now, u16 flags)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	event__init(&raw->event, RAW_SAMPLE, 0, now);
	raw->event.flags = flags;
	raw->parent = BPF_CORE_READ(task, real_parent, tgid);
	raw->nr = (s32)regs->orig_ax;
	raw->futex = regs->di;
	raw->gil = GIL_HELD_UNKNOWN;
	raw->gil_wait = 0;
	raw->python = 0;
	raw->unstacked = 0;
	raw->native.ip = 0;
	raw->native.links = 0;
	raw->native.window = 0;
	if (!task__in_32bit_call(task))
		return true;
	/* it has other stacks and other call numbers */
	raw->nr = -1;
	return false;
}

static __always_inline void fill(struct raw_sample *raw, struct task_struct *task, u64 now, u16 flags)
{
	if (!fill_call(raw, task, now, flags))
		return;
	native__take(&raw->native, task, NULL);
	raw->python = python__stack(STACK_FRAMES);
	if (raw->python)
		read_gil(raw, task);
}

/* The same without a stack: the worker takes that of a similar interval. */
static __always_inline void fill_unstacked(struct raw_sample *raw, struct task_struct *task, u64 now, u16 flags)
{
	if (!fill_call(raw, task, now, flags))
		return;
	raw->unstacked = 1;
	/* it shows that the thread was in its own code, as in a page fault */
	raw->native.ip = ((struct pt_regs *)bpf_task_pt_regs(task))->ip;
	if (raw->nr == SYS_futex)
		read_gil(raw, task);
}

static __always_inline u8 reason_of(u32 state, bool iowait)
{
	if (!state)
		return SAMPLE_PREEMPTED;
	if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN))
		return SAMPLE_STOPPED;
	if (iowait)
		return SAMPLE_DISK;
	if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		return SAMPLE_BLOCKED;
	return SAMPLE_OTHER;
}

/* Emits a record without a stack, which can't be read any more. */
static __always_inline void bare(struct raw_sample *raw, struct task_struct *task, u64 start, u64 end, u8 reason)
{
	raw->event.time = end;
	raw->event.pid = task->tgid;
	raw->event.tid = task->pid;
	raw->event.id = RAW_SAMPLE;
	raw->event.probe = 0;
	raw->event.flags = 0;
	raw->start = start;
	raw->python = 0;
	raw->parent = 0;
	raw->nr = -1;
	raw->futex = 0;
	raw->lock = 0;
	raw->lock_owner = raw->private = 0;
	raw->timeout = 0;
	raw->file = 0;
	raw->realtime = 0;
	raw->gil = 0;
	raw->gil_wait = 0;
	raw->kernel = 0;
	raw->unstacked = 0;
	raw->reason = reason;
	raw->native.ip = 0;
	raw->native.links = 0;
	raw->native.window = 0;
}
