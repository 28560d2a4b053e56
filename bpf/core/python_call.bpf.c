// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tail-called program that reads a call's Python stack, see at_call.bpf.h. Loaded only if an option of a family
 * needs it.
 */
#include "core/at_call.bpf.h"
#include "core/python.bpf.h"
#include "core/python_gil.bpf.h"

struct python_call_map python_call SEC(".maps");

/*
 * The thread's topmost open call is the one that has just begun. Its start time is taken again after the walk, so
 * that the duration does not include the walk.
 */
SEC("called/python_call")
int core_at_call(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *th = bpf_task_storage_get(&threads, task, 0, 0);
	struct open_call *c = th ? span__top(th) : NULL;
	u32 stack, gil = GIL_HELD_UNKNOWN, at;
	struct call *call;

	if (!c)
		return 1;
	stack = python__stack(STACK_FRAMES);
	if (stack)
		gil = python__gil_held(task, NULL);
	at = c->stack_at;
	if (at <= CALL_MAX - 2 * sizeof(u32)) {
		*(u32 *)(c->record + at) = stack;
		*(u32 *)(c->record + at + sizeof(u32)) = gil;
	}
	call = (struct call *)c->record;
	call->span.start = bpf_ktime_get_ns();
	return span__opened(call);
}
