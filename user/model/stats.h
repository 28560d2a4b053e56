/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Count, total, extremes, mean, deviation, median and p99 of a stream of ns.
 *
 * All are exact, except that a group stores at most STATS_EXACT samples, and all groups of one pool together
 * STATS_POOL. Beyond either, a group's samples become a histogram of 128 steps an octave, in 58 KiB, whose median and
 * p99 are off by 0.4% at most. See stats__approximate().
 */
#pragma once

#include "core/types.h"

#define STATS_EXACT (1u << 20)
#define STATS_POOL  (16u << 20) /* 128 MiB */

struct stats_pool {
	u64 samples; /* stored by all groups together */
	u32 approximate; /* number of groups that have become histograms */
};

struct stats {
	u64 count, total, min, max;
	double mean, m2; /* Welford: no cancellation in a sum of squares */
	u64 *samples;
	u32 n, allocated;
	bool sorted;
	u64 *histogram; /* instead of samples */
};

/* A zeroed struct stats is ready. 0 or -ENOMEM. */
int stats__add(struct stats *s, struct stats_pool *pool, u64 value);
void stats__free(struct stats *s, struct stats_pool *pool);

bool stats__approximate(const struct stats *s);
double stats__stddev(const struct stats *s); /* of a sample: divided by n - 1 */
double stats__median(struct stats *s); /* mean of the middle two */
u64 stats__percentile(struct stats *s, double percent); /* nearest rank */
