// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators of PyTorch. The host code (torch.c) finds their entries and ends. */
#include "core/at_call.bpf.h"
#include "torch.h"

OPTION(torch, all, "also operators that only make views, reserve memory or call another operator");
OPTION(torch, stacks, "Python stack and GIL at operators");

#define TORCH_FAMILY EVENT_FAMILY(ID_torch_op)

/* A call has ended: the call in which it was made gets the number of calls within it. */
static __always_inline void torch__count(struct thread *th, const struct torch_call *e)
{
	struct open_call *around = span__top(th);
	u32 inner = e->inner + 1;

	if (around && EVENT_FAMILY(((struct event *)around->record)->id) == TORCH_FAMILY)
		((struct torch_call *)around->record)->inner += inner;
}

#define AT_END(th, e)	 torch__count(th, (const struct torch_call *)(e))
#define AT_ENTRY(ctx, e) AT_CALL__STACK(ctx, e, option_torch_stacks)

/* at::_ops::OP::call(..): the probe has the operator's name. */
PLACED__PROGRAM(torch_op, "site/torch_op", torch_op, AT_ENTRY, AT_END)
{
	e->sequence = -1;
}
