/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes of distributed training: which steps of their loops belong together, and how long each waited for the
 * others.
 *
 * A collective ends in all ranks at about the same time, so in each step the rank that was last to reach its
 * collectives spends the least time in them. What another rank spends there beyond that, it waited for that rank. This
 * needs no common clock.
 */
#ifndef SONDE_MODEL_RANKS_H
#define SONDE_MODEL_RANKS_H

#include "model/torch_steps.h"

struct rank {
	const struct torch_loop *loop;
	const struct task *task; /* NULL: not known */
	bool has_number; /* task has its rank */
	s64 ahead; /* the step with index i belongs to the one with index i + ahead of the first rank */
	u64 waited_ns; /* for other ranks */
	u64 last_steps; /* steps in which it was the last to reach the collectives */
	u64 delayed_ns; /* by how much all other ranks waited for it in these steps */
};

struct ranks {
	struct rank *list; /* by rank, those without one last */
	u32 n;
	u64 aligned; /* steps that two ranks or more have */
};

/* steps must outlive it. 0 or negative errno; ranks__free in any case. */
int ranks__new(struct ranks **out, const struct torch_steps *steps, const struct names *names);
void ranks__free(struct ranks *r);
/* Returns the rank for which all others waited longest, if they waited at all; NULL: there is none. */
const struct rank *ranks__straggler(const struct ranks *r);
/* Returns the phase that takes a rank longer than the others by most, and its average and theirs in ns. */
enum torch_phase ranks__slow_phase(const struct ranks *r, const struct rank *rank, u64 *own_ns, u64 *others_ns);

#endif
