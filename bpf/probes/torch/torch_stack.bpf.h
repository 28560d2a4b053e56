/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --torch=stacks: the Python stack at a call. Most calls are made within another one from the same position in the same
 * Python frame. As that frame can't end before the outer call does, they have the outer call's stack, which costs two
 * or three reads instead of a walk. Another position or frame is that of Python code that the outer call has called: a
 * hook, an autograd.Function, an operator that is written in Python.
 */
#pragma once

#include "core/python.bpf.h"
#include "torch_call.bpf.h"

OPTION(torch, stacks, "Python stack at each operator and backward node");
OPTION_NUMBER(torch, rate, "number",
	      "Python stacks that are read per second and thread at most, with --torch=stacks; 20,000");

#define TORCH_RATE	20000 /* walks a second and thread */
#define TORCH_WINDOW_NS 10000000
#define TORCH_WINDOWS	100 /* a second */

/* A thread's last walk, and its walks since the start of a window. */
struct torch_walked {
	u64 frame, instr; /* see python__position() */
	u64 window;
	u32 walks;
	u32 stack; /* 0: frame and instr are not known */
};

struct {
	TASK_STORAGE(struct torch_walked);
} torch_walked SEC(".maps");

static __always_inline bool torch__may_walk(struct torch_walked *w, u64 now)
{
	u64 rate = option_torch_rate ?: TORCH_RATE;

	if (now - w->window >= TORCH_WINDOW_NS) {
		w->window = now;
		w->walks = 0;
	}
	return w->walks++ < (rate + TORCH_WINDOWS - 1) / TORCH_WINDOWS;
}

/* For the thread's topmost call, which has just begun. */
static __always_inline u32 torch__stack(u64 now)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct thread *th = bpf_task_storage_get(&threads, me, 0, 0);
	struct torch_walked *w = bpf_task_storage_get(&torch_walked, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct torch_call *around = th ? torch__around(th, 2) : NULL;
	u64 frame, instr;

	if (!w) {
		loss__count(TORCH_FAMILY, LOSS_STORAGE, now);
		return 0;
	}
	if (!python__position(me, &frame, &instr))
		frame = 0;
	else if (around && w->stack && around->stack == w->stack && frame == w->frame && instr == w->instr)
		return w->stack;
	w->stack = 0;
	if (!torch__may_walk(w, now)) {
		loss__count(TORCH_FAMILY, LOSS_RATE, now);
		return 0;
	}
	w->frame = frame;
	w->instr = instr;
	w->stack = python__stack(STACK_FRAMES);
	/* before the thread's first walk its position is not known */
	if (!frame)
		w->frame = -1;
	return w->stack;
}
