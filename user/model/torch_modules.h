/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The nn.Module in whose forward() each call of PyTorch was made, by the call's Python stack. A backward node, and what
 * it calls, belongs to the module in which the operator was called that created the node.
 */
#pragma once

#include "model/module_path.h"
#include "model/torch.h"

/* The nodes of which modules are kept */
#define TORCH_MODULE_NODES_MAX (1u << 20)

/* Of a module: its operators and backward nodes */
struct torch_module_sum {
	u64 calls, self_ns; /* without the modules within it */
	u64 total_ns,
		backward_ns; /* with them after torch_modules__finish(); backward_ns: of total_ns, in backward nodes */
};

struct torch_modules {
	struct module_paths paths;
	struct map created; /* struct torch_created -> u32 path: sequence numbers of nodes that operators created */
	struct map threads; /* struct torch_thread_id -> struct torch_module_nodes */
	struct map sums; /* u32 path -> struct torch_module_sum */
	u64 dropped; /* nodes without a module, as there were too many */
};

/* Reads all stacks and nodes of q; stacks must outlive it. 0 or negative errno; torch_modules__free in any case. */
int torch_modules__read(struct torch_modules *m, const struct query *q, const struct stacks *stacks);
void torch_modules__free(struct torch_modules *m);
/* Writes the call's path of modules to *path, 0 if it has none, and adds the call to the sums. Returns 0 or -ENOMEM. */
int torch_modules__add(struct torch_modules *m, const struct torch_span *c, u32 *path);
/* Adds what the modules within a module took to its sums, once all calls are added. Returns 0 or -ENOMEM. */
int torch_modules__finish(struct torch_modules *m);
