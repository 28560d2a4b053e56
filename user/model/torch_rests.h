/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The times in which the library in a process recorded no operators, to keep within --torch-budget, and the steps of
 * training within and outside of them.
 */
#pragma once

#include "model/query.h"

struct torch_rest_time {
	u32 pid;
	u64 from, to; /* CLOCK_MONOTONIC ns */
	u64 steps; /* of training that ended in it */
	u64 cost_ns;
};

struct torch_rests {
	struct torch_rest_time *list; /* by pid and time */
	u32 n;
	u64 steps, recorded_steps; /* all, and the recorded ones */
	u64 ns; /* the sum of the times of all processes, within the selected time */
	u64 cost_ns; /* what recording took of the processes' time, as the library estimated it */
	bool by_shim; /* the library recorded, so that no probe cost anything */
};

/* Call torch_rests__free in any case. 0 or negative errno. */
int torch_rests__read(struct torch_rests *r, const struct query *q);
void torch_rests__free(struct torch_rests *r);
/* Does the process rest at a moment of this time? */
bool torch_rests__overlap(const struct torch_rests *r, u32 pid, u64 from, u64 to);
/* The sum of the process's rests, within the selected time. */
u64 torch_rests__sum(const struct torch_rests *r, const struct query *q, u32 pid);
/* The steps of the process that ended in its rests, of which only the number is recorded. */
u64 torch_rests__steps(const struct torch_rests *r, u32 pid);
