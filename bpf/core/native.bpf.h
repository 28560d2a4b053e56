/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes the native user stack of the current thread, in any context in which user memory may be read without
 * faults; or, in a sleepable program, another task's.
 */
#ifndef SONDE_NATIVE_BPF_H
#define SONDE_NATIVE_BPF_H

#include "core/native.h"
#include "core/sonde.bpf.h"

/* Bytes of the record up to the end of the chain, for emit(). */
#define NATIVE_SIZE(record, native) \
	(__builtin_offsetof(typeof(record), native.chain) + ((record).native.links & (NATIVE_CHAIN - 1)) * sizeof(u64))

/* task NULL: the current one's memory, without faults. A constant where this is inlined. */
static __always_inline long native__read(void *to, u32 size, u64 from, struct task_struct *task)
{
	if (task)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

/* Follows frame pointers upward while they make sense. What they lead to is checked by the loader. */
static __always_inline u32 native__chain(struct native_stack *n, u64 bp, struct task_struct *other)
{
	u64 frame[2], distance;
	u32 i;

	/* one less: so the number of links is within bounds that the verifier knows */
	for (i = 0; i < NATIVE_CHAIN - 1; i++) {
		if (!bp || bp & 7 || native__read(frame, sizeof(frame), bp, other))
			break;
		/* code lies in the lower half of the address space */
		if (frame[1] < 4096 || frame[1] >> 47)
			break;
		distance = frame[0] > bp ? (frame[0] - bp) >> 3 : 0;
		if (distance >> 16)
			distance = 0;
		n->chain[i & (NATIVE_CHAIN - 1)] = frame[1] | distance << 48;
		if (!distance)
			return i + 1;
		bp = frame[0];
	}
	return i;
}

/* other: task, where it is not the current one; else NULL */
static __always_inline void native__take(struct native_stack *n, struct task_struct *task, struct task_struct *other)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 sp = regs->sp;

	n->ip = regs->ip;
	n->sp = sp;
	n->bp = regs->bp;
	n->window = 0;
	/* near the end of the stack's mapping there is less */
	if (!native__read(n->stack, NATIVE_WINDOW, sp, other))
		n->window = NATIVE_WINDOW;
	else if (!native__read(n->stack, NATIVE_WINDOW / 4, sp, other))
		n->window = NATIVE_WINDOW / 4;
	n->links = native__chain(n, n->bp, other);
}

#endif
