/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the native user stack of the current thread, in any context in which user memory may be read without faults;
 * a sleepable program can read that of another task.
 */
#pragma once

#include "core/native.h"
#include "core/sonde.bpf.h"

/* Bytes of the record up to the end of the chain, for emit(). */
#define NATIVE_SIZE(record, native) \
	(__builtin_offsetof(typeof(record), native.chain) + ((record).native.links & (NATIVE_CHAIN - 1)) * sizeof(u64))

/* The same of a record without a native stack: more than a kilobyte less to copy. */
#define NATIVE_SIZE_BARE(record, native) __builtin_offsetof(typeof(record), native.stack)

/* task NULL: the current task's memory, read without faults. The argument is a constant wherever this is inlined. */
static __always_inline long native__read(void *to, u32 size, u64 from, struct task_struct *task)
{
	if (task)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

struct native_walk {
	struct native_stack *n;
	u64 bp;
	struct task_struct *other;
};

/*
 * Reads the i-th link of the chain of frame pointers. The walk ends at a link that is not plausible; the worker
 * checks that the addresses are code.
 */
static __always_inline long native__link(u32 i, struct native_walk *w, struct task_struct *other)
{
	u64 frame[2], distance, bp = w->bp;

	if (!bp || bp & 7 || native__read(frame, sizeof(frame), bp, other))
		return 1;
	/* code lies in the lower half of the address space */
	if (frame[1] < 4096 || frame[1] >> 47)
		return 1;
	distance = frame[0] > bp ? (frame[0] - bp) >> 3 : 0;
	if (distance >> 16)
		distance = 0;
	w->n->chain[i & (NATIVE_CHAIN - 1)] = frame[1] | distance << 48;
	w->n->links = i + 1;
	w->bp = frame[0];
	return !distance;
}

static long native__link_here(u32 i, struct native_walk *w)
{
	return native__link(i, w, NULL);
}

static long native__link_there(u32 i, struct native_walk *w)
{
	return native__link(i, w, w->other);
}

/* `other` is `task` if that is not the current task, else NULL. */
static __always_inline void native__take(struct native_stack *n, struct task_struct *task, struct task_struct *other)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct native_walk w = { .n = n, .bp = regs->bp, .other = other };
	u64 sp = regs->sp;

	n->ip = regs->ip;
	n->sp = sp;
	n->bp = regs->bp;
	n->window = 0;
	/* near the end of the stack's mapping fewer bytes can be read */
	if (!native__read(n->stack, NATIVE_WINDOW, sp, other))
		n->window = NATIVE_WINDOW;
	else if (!native__read(n->stack, NATIVE_WINDOW / 4, sp, other))
		n->window = NATIVE_WINDOW / 4;
	n->links = 0;
	/* one link less, so that the verifier can bound the number of links */
	bpf_loop(NATIVE_CHAIN - 1, other ? native__link_there : native__link_here, &w, 0);
}
