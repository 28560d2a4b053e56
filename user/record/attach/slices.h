/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits the cost of families sched, sample and gil by measuring in slices of time: slices.c. */
#pragma once

#include "core/types.h"
#include "record/attach/slice_budget.h"

struct session;

struct slices {
	u64 last; /* time of the last update, ns */
	u64 slice_from; /* ns; 0: not begun */
	u64 detached_since; /* ns: end of the last slice, since when the programs are detached; 0: they are attached */
	u64 next; /* ns: no slice begins or ends before */
	u64 part_since; /* up to which this time is written, ns */
	u64 unmeasured_ns; /* sum of such times before this one */
	u64 credit_used; /* ns */
	u64 n_detached; /* how often they were detached */
	u64 run_ns, cost_ns; /* of the followed threads and of the programs, not yet in the budget */
	u64 slice_run_ns; /* the same of the current slice */
	double run_rate; /* CPUs that the followed threads used in the last slice */
	struct slice_budget budget;
};

/* Called at each tick. */
void slices__tick(struct session *s, u64 now);
/* Called before the recording stops: begins no slice any more. */
void slices__stop(struct session *s);
/* Returns the ns between these times for which the programs have been detached since a slice ended. */
u64 slices__left_out(const struct slices *l, u64 from, u64 until);
/* Returns the ns for which they were detached until now. */
u64 slices__sum(const struct slices *l, u64 now);
