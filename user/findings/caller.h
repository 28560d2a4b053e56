/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code called a helper: the innermost function of the user's code in another file than the function that waited.
 * A helper such as get() in http_client.py does not say for what its program waited, but its caller does.
 */
#pragma once

#include "findings/finding.h"
#include "util/map.h"

struct callers {
	const struct stacks *stacks;
	u32 function; /* number of the called function (struct stack_frame.code) */
	u64 ns; /* time in this function */
	struct map sums; /* of ns, by the caller's function and line */
};

/* For the callers of the user's function in which `stack` is */
void callers__init(struct callers *c, const struct stacks *stacks, u32 stack);
/* Adds the time of a stack if it is in this function. */
void callers__add(struct callers *c, u32 stack, u64 ns);
/* Sets code's caller if one line called it for half of the time or more. Frees c. */
void callers__finish(struct callers *c, struct finding_code *code);
