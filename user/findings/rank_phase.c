// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Phases of training by the functions of PyTorch that are on a stack, for recordings without its operators. */
#include <string.h>

#include "findings/slow_rank.h"
#include "util/array.h"
#include "util/path.h"

#define COLLECTIVES "/torch/distributed/distributed_c10d.py"

static const struct phase {
	const char *file; /* the end of a path, or a folder in it */
	const char *function; /* the end of its name; "": any */
	const char *name;
} phases[] = {
	{ COLLECTIVES, "", "a collective operation" },
	{ "/torch/distributed/checkpoint/", "", "saving a checkpoint" },
	{ "/torch/serialization.py", "save", "saving a checkpoint" },
	{ "/torch/serialization.py", "load", "loading a checkpoint" },
	{ "/torch/utils/data/", "", "data loading" },
	{ "/torch/optim/", "", "the optimizer" },
	{ "/torch/autograd/graph.py", "_engine_run_backward", "the backward pass" },
	{ "/torch/nn/modules/module.py", "_call_impl", "the forward pass" },
};

static bool is_in(const struct stack_frame *f, const struct phase *p)
{
	bool is_folder = p->file[strlen(p->file) - 1] == '/';

	return (is_folder ? strstr(f->file, p->file) != NULL : path__ends_with(f->file, p->file)) &&
	       path__ends_with(f->name, p->function);
}

const char *rank_phase__of(const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller)
		for (u32 i = 0; f->kind == FRAME_PYTHON && i < ARRAY_LEN(phases); i++)
			if (is_in(f, &phases[i]))
				return phases[i].name;
	return NULL;
}

const char *rank_phase__collective(const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *f;
	const char *name = NULL;

	/* the outermost one: some call others */
	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller)
		if (f->kind == FRAME_PYTHON && path__ends_with(f->file, COLLECTIVES))
			name = f->name;
	return name ? name : rank_phase__of(stacks, stack);
}
