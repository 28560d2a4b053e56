/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes the native user stack of the current thread; for any context in which user memory may be read without faults. */
#ifndef SONDE_NATIVE_BPF_H
#define SONDE_NATIVE_BPF_H

#include "core/native.h"
#include "core/sonde.bpf.h"

/* Bytes of the record up to the end of the chain, for emit(). */
#define NATIVE_SIZE(record, native) \
	(__builtin_offsetof(typeof(record), native.chain) + ((record).native.links & (NATIVE_CHAIN - 1)) * sizeof(u64))

/* Follows frame pointers upward while they make sense. What they lead to is checked by the loader. */
static __always_inline u32 native__chain(struct native_stack *n, u64 bp)
{
	u64 frame[2], distance;
	u32 i;

	/* one less: so the number of links is within bounds that the verifier knows */
	for (i = 0; i < NATIVE_CHAIN - 1; i++) {
		if (!bp || bp & 7 || bpf_probe_read_user(frame, sizeof(frame), (const void *)bp))
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

static __always_inline void native__take(struct native_stack *n, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 sp = regs->sp;

	n->ip = regs->ip;
	n->sp = sp;
	n->bp = regs->bp;
	n->window = 0;
	/* near the end of the stack's mapping there is less */
	if (!bpf_probe_read_user(n->stack, NATIVE_WINDOW, (const void *)sp))
		n->window = NATIVE_WINDOW;
	else if (!bpf_probe_read_user(n->stack, NATIVE_WINDOW / 4, (const void *)sp))
		n->window = NATIVE_WINDOW / 4;
	n->links = native__chain(n, n->bp);
}

#endif
