/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rank of a job that the others wait for. A collective operation ends in all ranks at about the same time, so the
 * rank that is last to reach it waits least. It is slow if what it does itself takes longer than in the other ranks,
 * and chance does not explain that. Waits for a CPU, which equal ranks have on a busy machine, do not count.
 */
#pragma once

#include "findings/job_ranks.h"

struct slow_rank {
	const struct job_rank *rank;
	u32 others; /* ranks that waited for it */
	u64 lost_ns, wall_ns; /* sums of these: for how much longer than the slow rank they waited; all their time */
	u32 waits; /* stack of a wait of one of them */
	enum finding_kind kind; /* what the slow rank did longer than the others, */
	struct finding_code code; /* in which function of the program, */
	u64 code_ns; /* for how long, */
	const char *phase; /* and in which phase, "the backward pass"; NULL: its stacks show none */
};

struct slow_ranks {
	struct job_ranks ranks;
	struct slow_rank *list; /* one of a job at most */
	u32 n;
};

/* 0 or -ENOMEM; slow_ranks__free in any case. */
int slow_ranks__find(struct slow_ranks *s, const struct finding_input *in);
void slow_ranks__free(struct slow_ranks *s);
/* Returns the slow rank of a process's job, which may be the process itself; NULL: none. */
const struct slow_rank *slow_ranks__of_job(const struct slow_ranks *s, u32 pid);

/* rank_phase.c: returns the phase of training that a stack shows, "the backward pass"; NULL: none. */
const char *rank_phase__of(const struct stacks *stacks, u32 stack);
/* Returns the collective operation that the program called, "all_reduce", else the phase; NULL: neither is known. */
const char *rank_phase__collective(const struct stacks *stacks, u32 stack);
