/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that are ranks of distributed training with PyTorch, for exports that write a file for each. */
#pragma once

#include "model/names.h"

struct rank_process {
	const struct task *task;
	u32 rank, world_size;
	bool is_guess; /* the launcher set no rank: the processes of a job are numbered in order of their starts */
};

struct rank_processes {
	struct rank_process *list; /* by rank */
	u32 n;
};

/*
 * Lists the processes with collectives; without any, those with a rank that no process with a rank started, as a data
 * loader's workers inherit it. names must outlive it. 0 or negative errno; free the list in any case.
 */
int rank_processes__list(struct rank_processes *r, struct trace *t, const struct names *names);
