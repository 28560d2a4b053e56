/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes of distributed training: which steps of their loops belong together, and how long each waited for the
 * others. Processes of one user and cgroup (job.h) with the same number of ranks are one job. If a rank occurs twice
 * among these, each parent process is taken for the launcher of a job, and only jobs all of whose ranks were recorded
 * are compared.
 *
 * A collective ends in all ranks at about the same time, so in each step the rank that was last to reach its
 * collectives spends the least time in them. What another rank spends there beyond that, it waited for that rank. A
 * rank with fewer collectives in a step than another is left out of this step: its records were lost, or it waits for
 * other ranks. Where the program numbers its steps (ProfilerStep#N), this needs no common clock; other steps are
 * matched by time, so in a merged trace the clocks of the machines must differ by less than half a step.
 */
#pragma once

#include "model/torch_steps.h"

struct rank {
	const struct torch_loop *loop;
	const struct task *task; /* NULL: not known */
	const struct names *names;
	bool has_number; /* task has its rank */
	bool has_collectives;
	bool is_ambiguous; /* another process with collectives has the same rank and number of ranks */
	u32 job; /* ranks with the same number are compared with each other; 0: with none */
	u64 compared; /* steps of its job in which two ranks or more were compared */
	s64 ahead; /* the step with index i belongs to the one with index i + ahead of the first rank of its job */
	u64 waited_ns; /* for other ranks */
	u64 last_steps; /* steps in which it was the last to reach the collectives */
	u64 delayed_ns; /* by how much all other ranks waited for it in these steps */
	double delayed_squares; /* ns^2: the sum of the squares of these delays */
};

struct ranks {
	struct rank *list; /* by rank within a job; processes without collectives, then those without a rank last */
	u32 n;
	u64 compared; /* steps of all jobs in which two ranks or more were compared */
	bool is_ambiguous; /* ranks were not compared, as it is not known to which job each belongs */
};

/* steps must outlive it. 0 or negative errno; ranks__free in any case. */
int ranks__new(struct ranks **out, const struct torch_steps *steps, const struct names *names);
void ranks__free(struct ranks *r);
/*
 * Returns the rank for which all others of its job waited longest, if that is at least twice as long as for any other,
 * and more than by chance: equal ranks delay each other in turns. NULL: there is none.
 */
const struct rank *ranks__straggler(const struct ranks *r);
/* Returns the phase that takes a rank longer than the others by most, and its average and theirs in ns. */
enum torch_phase ranks__slow_phase(const struct ranks *r, const struct rank *rank, u64 *own_ns, u64 *others_ns);
