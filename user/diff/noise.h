/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How large a difference between two traces is by chance alone. docs/diff.md describes the method.
 *
 * The time of each trace is cut into bins of equal length. What varies from bin to bin within a trace is what may
 * vary from trace to trace, too. Neighbouring bins are not independent, so the variance is also estimated from blocks
 * of two and of four of them, and the largest result counts.
 */
#pragma once

#include "core/types.h"

#define NOISE_BINS 32
/* The probability that one or more of all compared differences exceed their noise, if only chance makes them differ */
#define NOISE_P 0.05

/* A figure of one trace */
struct noise_sum {
	float bins[NOISE_BINS]; /* by time; they sum to the total */
	double counting; /* variance of the total that follows from counting alone (Poisson), 0: it was not counted */
};

double noise_sum__total(const struct noise_sum *s);
/*
 * Half the width of the interval around 0 in which the difference of a/a_units and b/b_units lies by chance, except
 * with probability p.
 */
double noise__of(const struct noise_sum *a, double a_units, const struct noise_sum *b, double b_units, double p);

/*
 * The bins of a ratio of two sums: their total is n/d * scale, and they vary as the ratio does (its linearization). 0
 * where d is 0.
 */
void noise_sum__ratio(struct noise_sum *out, const struct noise_sum *n, const struct noise_sum *d, double scale);

/* The value that Student's t with so many degrees of freedom exceeds, on both sides together, with probability p. */
double noise__student(double p, u32 freedom);
