/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_ARGS_H
#define SONDE_ARGS_H

#include "sonde.bpf.h"

struct args {
	u64 a1, a2, a3, a4, a5, a6, sp;
};

/*
 * All of them at once: left to itself, clang joins loads of two branches into
 * one through a computed offset, and the verifier refuses a modified ctx.
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

#endif
