/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by torch.c, torch_tree.c, torch_parts.c and torch_flops.c. */
#pragma once

#include "model/torch.h"

/* A call that has ended, until the call around it ends */
struct torch_pending {
	struct torch_span call;
	u32 n; /* calls that this stands for: several, if the oldest were joined to bound memory */
	bool is_out; /* it was handed out */
	/* of it and the calls within it: what was counted in outer_ns of calls and in cost_ns of the coverage */
	u64 counted_ns, counted_cost_ns;
	u64 counted_flops; /* the same of outer_flops */
	u64 cold_ns; /* what traps within it took beyond the cost of one that was measured with warm caches */
};

/* Memory that is allocated */
struct torch_block {
	u64 bytes, time;
	u64 serial; /* numbers allocations from 1 */
	struct torch_memory_site *site; /* NULL: the call that it belongs to has not ended, or is not looked for */
	u32 tid;
};

/* Memory that was allocated or freed in a call */
struct torch_mark {
	u64 call_start;
	s64 bytes; /* negative: freed */
	u64 address;
	u64 serial; /* of the block; of a release: of the last block that was allocated before, so that marks are sorted by it */
	u64 peaks, freed_peaks; /* of the process when it was allocated, and freed */
	u32 name, stack; /* of the innermost call; name 0: it has not ended */
	bool is_release;
	bool is_freed; /* it was allocated here, and freed since */
};

/* A tensor that a call got */
struct torch_tensor {
	u64 call_start;
	u64 sizes[6];
	u8 argument, element, dimensions;
};

/* Work on a GPU, by its launch */
struct torch_launch {
	u64 time; /* of the launch */
	u64 ns; /* of the work; 0: a call has it already */
};

struct torch_thread {
	struct torch_pending *pending; /* by end */
	u32 n_pending;
	u32 joined_max; /* calls that one of pending may stand for; 0: not set yet */
	struct torch_mark *marks;
	u32 n_marks;
	u32 marks_max; /* where allocations that wait for a call are resolved; 0: not set yet */
	struct torch_tensor *tensors;
	u32 n_tensors;
	struct torch_launch *launches; /* by time */
	u32 n_launches;
};

struct torch {
	const struct query *q;
	struct map numbers; /* struct torch_name_key -> u32: numbers in texts */
	struct map texts; /* model/texts.h: names */
	struct map shapes; /* the same: sizes of tensors */
	u32 *formulas; /* by number of the name less one: for torch_flops__count() */
	u32 n_formulas;
	struct map threads; /* struct torch_thread_key -> struct torch_thread */
	struct map memory; /* struct torch_address -> struct torch_block: what was allocated and not freed yet */
	u64 n_blocks; /* that were allocated */
	u32 window; /* of trace_facts.windows: the one of the last event of memory */
	struct torch_memory_sums *sums; /* NULL: sites of allocations are not looked for */
	u64 cost_call, cost_own, cost_entry, cost_hit; /* ns, see event torch_cost */
	u64 n_launches;
	struct torch_coverage coverage;
	struct torch_rests rests;
	int (*fn)(const struct torch_span *c, const struct torch_span *parent, void *arg);
	void *arg;
};

struct torch_thread_key {
	u32 pid, tid;
};

struct torch_address {
	u64 address, pid;
};

/* NULL: no memory */
static inline struct torch_thread *torch__thread(struct torch *t, u32 pid, u32 tid)
{
	struct torch_thread_key key = { pid, tid };

	return map__get(&t->threads, &key);
}

/* torch_tree.c: adds a call that ended after all that were added before. 0 or negative errno. */
int torch_tree__add(struct torch *t, const struct torch_span *c);
/* Hands out the calls that are left, which are in no other. 0 or negative errno. */
int torch_tree__finish(struct torch *t);

/* torch_memory.c: reads an event of memory. 0 or -ENOMEM. */
int torch_parts__add_memory(struct torch *t, const struct view *v);
/* Sets what the call allocated and freed itself. 0 or -ENOMEM. */
int torch_parts__take_memory(struct torch *t, struct torch_thread *thread, struct torch_span *c);
/* torch_parts.c: reads an event of a tensor. 0 or -ENOMEM. */
int torch_parts__add_tensor(struct torch *t, const struct view *v);
/* Reads what GPUs did. 0 or negative errno. */
int torch_parts__read_launches(struct torch *t);
/* Sets what belongs to the call itself, and not to the calls within it. 0 or -ENOMEM. */
int torch_parts__take(struct torch *t, struct torch_span *c);

/* torch_flops.c: returns the number of the formula for calls of this name; 0: there is none. */
u32 torch_flops__formula(const char *name);
/* Returns false if the tensors that it needs are not recorded. */
bool torch_flops__count(u32 formula, const struct torch_tensor *tensors, u32 n, u64 *flops);
