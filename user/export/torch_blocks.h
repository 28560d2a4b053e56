/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The CPU memory of PyTorch's tensors while a trace is exported in order of time: its blocks, and their sum. */
#pragma once

#include "model/facts.h"
#include "model/view.h"
#include "util/map.h"

struct torch_blocks {
	struct map blocks; /* address and process -> u64 bytes */
	struct map live; /* u32 pid -> u64 bytes of its blocks */
	u32 window; /* of trace_facts.windows: the one of the last event */
};

/* What an event torch_alloc changed. */
struct torch_block {
	u32 pid;
	u64 address;
	u64 bytes; /* of the block; 0: it was allocated before the recording or in a pause, so its size is not known */
	bool is_release;
	u64 live; /* bytes of the process's blocks, with this change */
};

void torch_blocks__init(struct torch_blocks *b);
/* Returns whether a pause lies between the last event and this time. Then call torch_blocks__forget(). */
bool torch_blocks__is_after_pause(struct torch_blocks *b, const struct trace_facts *facts, u64 time);
/* Forgets all blocks: which of them are freed in a pause is not known. */
void torch_blocks__forget(struct torch_blocks *b);
/* Adds an event torch_alloc. 0 or -ENOMEM. */
int torch_blocks__change(struct torch_blocks *b, const struct view *v, struct torch_block *out);
void torch_blocks__free(struct torch_blocks *b);
