/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "sonde.bpf.h"

struct args {
	u64 a1, a2, a3, a4, a5, a6, sp;
};

/*
 * Reads all arguments at once. If each branch read its own, clang would join the loads of two branches into one load
 * at a computed offset, and the verifier refuses a modified ctx pointer.
 */
static __always_inline struct args args__read(struct pt_regs *ctx)
{
	struct args a = { ARG1(ctx), ARG2(ctx), ARG3(ctx), ARG4(ctx), ARG5(ctx), ARG6(ctx), ctx->sp };

	barrier_var(a.a1);
	barrier_var(a.a2);
	barrier_var(a.a3);
	barrier_var(a.a4);
	barrier_var(a.a5);
	barrier_var(a.a6);
	barrier_var(a.sp);
	return a;
}

/* The number that a call that succeeded has stored through its pointer argument; 0 if the call failed. */
static __always_inline u64 args__out(struct call *call, u64 where)
{
	u64 v = 0;

	if (!call->ret && where)
		bpf_probe_read_user(&v, sizeof(v), (const void *)where);
	return v;
}

#define ARGS_SUMMED 31 /* a power of two minus 1: the verifier derives the bound of a number from a mask */

/* The sum of n numbers in the target's memory, or of the first ARGS_SUMMED if there are more. */
static __always_inline u64 args__sum(u64 where, u64 n)
{
	u64 numbers[ARGS_SUMMED] = {}, sum = 0;
	u32 i, some = n < ARGS_SUMMED ? n : ARGS_SUMMED;

	barrier_var(some);
	bpf_probe_read_user(numbers, (some & ARGS_SUMMED) * sizeof(u64), (const void *)where);
	for (i = 0; i < ARGS_SUMMED; i++)
		sum += numbers[i];
	return sum;
}
