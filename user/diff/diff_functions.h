/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPU time by function: the time that the scheduler measured of all threads of one role, divided in proportion to the
 * samples of these threads. So the number of samples does not add to the noise, only how they divide.
 */
#pragma once

#include "diff/diff_private.h"

/* The role of a thread: numbers of texts. */
struct diff_role {
	u32 process, thread;
};

/* Returns the role of a thread; NULL: no memory. roles: struct thread_key -> struct diff_role, of this side. */
const struct diff_role *diff_role__of(struct diff *d, u32 side, struct map *roles, struct thread_key thread);

struct function_sums {
	struct diff *d;
	u32 side;
	struct map *roles;
	const struct stacks *stacks;
	struct map runs; /* struct diff_role -> struct role_run */
	struct map functions; /* struct function_key -> struct function_samples */
	struct map names; /* u32 stack -> u32 text */
};

void function_sums__init(struct function_sums *s, struct diff *d, u32 side, struct map *roles);
void function_sums__free(struct function_sums *s);
/* Adds time for which a thread of the role ran. 0 or -ENOMEM. */
int function_sums__add_run(struct function_sums *s, const struct diff_role *role, const float *bins);
/* Reads the samples and adds the functions to what is compared. 0 or negative errno. */
int function_sums__finish(struct function_sums *s, const struct stacks *stacks);
