/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Python stack at a call and whether its thread had the GIL, in the fields `stack` and `gil` of its event. A
 * family has a switch for it:
 *
 *	#define STACK(ctx, e) AT_CALL__STACK(ctx, e, option_cuda_stacks)
 *	SPAN__PROGRAM(cuda_launch, "span/libcudart.so:cudaLaunchKernel", cuda_launch, SPAN__NOTHING, 0, STACK)
 *
 * and its host code says .python_option = "stacks". The walker is one program that the others end in, by tail call: it is
 * expensive to verify, and as a function it would be verified again for each of them, even with the option off.
 */
#ifndef SONDE_AT_CALL_BPF_H
#define SONDE_AT_CALL_BPF_H

#include "core/gil_held.h"
#include "core/sonde.bpf.h"

struct python_call_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
};

extern struct python_call_map python_call SEC(".maps");

/* To be the last thing that a SPAN program does at the entry: it does not come back, unless there is no walker. */
#define AT_CALL__STACK(ctx, e, on)                                                                         \
	({                                                                                                 \
		_Static_assert(__builtin_offsetof(__typeof__(*(e)), gil) ==                                \
				       __builtin_offsetof(__typeof__(*(e)), stack) + sizeof(u32),          \
			       "stack and gil are written together");                                      \
		if (on) {                                                                                  \
			((struct open_call *)((void *)(e)-offsetof(struct open_call, record)))->stack_at = \
				__builtin_offsetof(__typeof__(*(e)), stack);                               \
			bpf_tail_call(ctx, &python_call, 0);                                               \
		}                                                                                          \
	})

#endif
