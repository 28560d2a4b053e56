/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much the probes of families that measure in slices of time may still cost: slices.c. All times are in ns. */
#pragma once

#include "core/types.h"

struct slice_budget {
	double ns; /* what may be spent now; negative: debt, the programs must be detached */
};

/*
 * Adds what is allowed for a time of `ns` in which the followed threads were on a CPU for `run`, and subtracts the
 * cost of the programs in it. limit: their share of the run time. What is not used, and debt, are kept up to a bound,
 * so that neither a long idle time nor one expensive moment decides for minutes.
 */
void slice_budget__update(struct slice_budget *b, double ns, double run, double cost, double limit);

/* The time between two slices need not be longer than this: it pays for the largest debt. */
#define SLICE_DETACHED_MAX 10000000000ULL
