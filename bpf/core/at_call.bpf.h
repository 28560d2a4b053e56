/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fills the fields `stack` and `gil` of an event: the Python stack at a call, and whether its thread had the GIL. A
 * family has an option for it:
 *
 *	#define STACK(ctx, e) AT_CALL__STACK(ctx, e, option_cuda_stacks)
 *	SPAN__PROGRAM(cuda_launch, "span/libcudart.so:cudaLaunchKernel", cuda_launch, SPAN__NOTHING, 0, STACK)
 *
 * and its host code sets .python_option = "stacks". The stack walker is a single program that the others tail-call at
 * their end. It is expensive to verify, and as a function it would be verified again in each of them, even with the
 * option off.
 */
#pragma once

#include "core/gil_held.h"
#include "core/sonde.bpf.h"

struct python_call_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
};

extern struct python_call_map python_call SEC(".maps");

/* Must be the last statement of a SPAN program at the entry: a tail call does not return if the walker is loaded. */
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
