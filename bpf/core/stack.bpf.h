/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tree of stack frames: assigns ids to frames and sends new frames to the worker. */
#pragma once

#include "core/sonde.bpf.h"
#include "core/stack.h"

struct stack_node {
	u64 offset; /* see raw_frame.offset */
	u32 caller;
	u32 code;
	u32 kind;
	u32 epoch; /* stack_epoch */
};

struct stack_nodes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct stack_node);
	__type(value, u32);
};

extern struct stack_nodes_map stack_nodes SEC(".maps");
extern u32 stack_last_frame; /* the id that was assigned last */
extern u32 stack_last_code;
/* Part of the keys of all tables of stacks and code. The worker increments it to have all frames sent again. */
extern u32 stack_epoch;

/*
 * The id of the stack with this innermost frame, called by frame `caller` (0: by none). For FRAME_NATIVE `code` is the
 * process (tgid) and `offset` the address in it. Returns 0 if the ring had no room; the frame is sent when it occurs
 * again. A separate function, so that the verifier checks it once and it has a stack frame of its own.
 */
__weak __noinline int stack__push(u32 caller, u32 kind, u32 code, u64 offset, u32 pid)
{
	struct stack_node key = {
		.offset = offset, .caller = caller, .code = code, .kind = kind, .epoch = *(volatile u32 *)&stack_epoch
	};
	struct raw_frame r = {};
	u32 *known, id;

	known = bpf_map_lookup_elem(&stack_nodes, &key);
	if (known)
		return *known;
	id = __sync_fetch_and_add(&stack_last_frame, 1) + 1;
	event__init(&r.event, RAW_FRAME, 0, bpf_ktime_get_ns());
	r.event.pid = pid;
	r.offset = offset;
	r.frame = id;
	r.caller = caller;
	r.code = code;
	r.kind = kind;
	if (!emit(&r, sizeof(r)))
		return 0;
	bpf_map_update_elem(&stack_nodes, &key, &id, BPF_ANY);
	return id;
}
