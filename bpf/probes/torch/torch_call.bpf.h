/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Open calls of the torch family, and samples of the time that its BPF programs take. */
#pragma once

#include "core/sonde.bpf.h"
#include "core/stack.h"
#include "torch.h"

#define TORCH_FAMILY EVENT_FAMILY(ID_torch_op)

/* The open call at this depth from the top, 1: the topmost one; NULL: there is none, or it is another family's. */
static __always_inline struct torch_call *torch__around(struct thread *th, u32 depth)
{
	u32 number = th->depth - depth;
	struct torch_call *call;

	if (number >= CALL_DEPTH)
		return NULL;
	call = (struct torch_call *)call__at(th, number)->record;
	return EVENT_FAMILY(call->span.event.id) == TORCH_FAMILY ? call : NULL;
}

/* Selects one program run in 256, by the lowest bits of its time. */
static __always_inline bool torch__is_sampled(u64 now)
{
	return !(now & 255);
}

/* Sends the duration of a program run. From these the host code calculates what a call costs. */
__weak __noinline int torch__sample(u32 kind, u32 ns)
{
	struct torch_sample s = { .kind = kind, .ns = ns };

	event__init(&s.event, RAW_OF(TORCH_FAMILY), 0, bpf_ktime_get_ns());
	emit(&s, sizeof(s));
	return 0;
}
