/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges that are marked with record_function(), which PyTorch's optimizers and data loaders use as well: two calls of
 * boxed operators, profiler::_record_function_enter_new(str name, str? args) and _record_function_exit(range).
 */
#pragma once

#include "core/sonde.bpf.h"
#include "torch.h"
#include "torch_step.bpf.h"

#define TORCH_RANGES 16 /* open in a thread at once; when there are more, the record of the outermost one is lost */

/*
 * The open ranges have the numbers `lost` to `depth` - 1; range n is stored at open[n % TORCH_RANGES]. A range that
 * ends on another thread, or never, stays open here. It does not fill its place for ever, because the outermost range
 * is discarded when there is no room.
 */
struct torch_ranges {
	u32 depth;
	u32 lost;
	struct torch_range open[TORCH_RANGES];
};

struct {
	TASK_STORAGE(struct torch_ranges);
} torch_ranges SEC(".maps");

/* The arguments are the last two elements of the vector of IValues at `stack`. */
__weak __noinline int torch__begin_range(u64 stack, u64 cookie)
{
	u64 vector[2] = {}, constant = 0, text = 0, now = bpf_ktime_get_ns();
	struct torch_ranges *r;
	struct torch_range *e;
	u32 depth;

	r = bpf_task_storage_get(&torch_ranges, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!r)
		return loss__count(EVENT_FAMILY(ID_torch_range), LOSS_STORAGE, now);
	depth = r->depth++;
	if (depth - r->lost >= TORCH_RANGES) {
		r->lost++;
		loss__count(EVENT_FAMILY(ID_torch_range), LOSS_DEPTH, now);
	}
	barrier_var(depth);
	e = &r->open[depth & (TORCH_RANGES - 1)];
	event__init(&e->span.event, ID_torch_range, cookie, now);
	__builtin_memset(e->name, 0, sizeof(e->name));
	if (!bpf_probe_read_user(vector, sizeof(vector), (const void *)stack) &&
	    !bpf_probe_read_user(&constant, sizeof(constant), (const void *)(vector[1] - 2 * TORCH_IVALUE_SIZE)) &&
	    !bpf_probe_read_user(&text, sizeof(text), (const void *)(constant + TORCH_CONSTANT_STRING)))
		bpf_probe_read_user_str(e->name, sizeof(e->name), (const void *)text);
	e->span.start = bpf_ktime_get_ns();
	return 0;
}

__weak __noinline int torch__end_range(void)
{
	struct torch_ranges *r = bpf_task_storage_get(&torch_ranges, bpf_get_current_task_btf(), 0, 0);
	u64 now = bpf_ktime_get_ns();
	struct torch_range *e;
	u32 depth;

	/* the range began before tracing or on another thread, or it was discarded */
	if (!r || r->depth == r->lost)
		return 0;
	depth = --r->depth;
	barrier_var(depth);
	e = &r->open[depth & (TORCH_RANGES - 1)];
	e->span.event.time = now;
	if (torch__records())
		emit(e, sizeof(*e));
	if (torch_counts_steps)
		torch__end_step(e);
	return 0;
}
