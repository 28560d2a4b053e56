/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What python.bpf.c's programs share: the start of a span, and the arguments of USDT probes. Included once.
 */
#pragma once

#include "core/python.bpf.h"
#include "python.h"

#define FAMILY_PYTHON EVENT_FAMILY(ID_python_gc)

static __always_inline void span__init(struct span *s, u16 id, u64 cookie)
{
	event__init(&s->event, id, cookie, 0);
	s->start = bpf_ktime_get_ns();
}

/*
 * The register with the number that instructions use. The barrier keeps the cases separate: clang would make one load
 * at a variable offset of them, which the verifier refuses.
 */
#define REGISTER(number, name)  \
	case number:            \
		v = ctx->name;  \
		barrier_var(v); \
		break

static __noinline u64 register_of(struct pt_regs *ctx, u32 reg)
{
	u64 v = 0;

	switch (reg) {
		REGISTER(0, ax);
		REGISTER(1, cx);
		REGISTER(2, dx);
		REGISTER(3, bx);
		REGISTER(4, sp);
		REGISTER(5, bp);
		REGISTER(6, si);
		REGISTER(7, di);
		REGISTER(8, r8);
		REGISTER(9, r9);
		REGISTER(10, r10);
		REGISTER(11, r11);
		REGISTER(12, r12);
		REGISTER(13, r13);
		REGISTER(14, r14);
		REGISTER(15, r15);
	}
	return v;
}

/* The first argument of a USDT probe. Returns false if its location is unknown or can't be read. */
static __always_inline bool usdt_argument(struct pt_regs *ctx, u64 cookie, s64 *out)
{
	u64 v;

	if (!(cookie & PYTHON_ARG_KNOWN))
		return false;
	v = register_of(ctx, cookie >> PYTHON_ARG_REGISTER & 15);
	if (cookie & PYTHON_ARG_MEMORY) {
		v += (s64)(s16)(cookie >> PYTHON_ARG_DISPLACEMENT);
		if (bpf_probe_read_user(&v, sizeof(v), (const void *)v))
			return false;
	}
	*out = cookie & PYTHON_ARG_WIDE ? (s64)v : (s32)v;
	return true;
}
