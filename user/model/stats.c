// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/stats.h"
#include "util/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define STEP_BITS 7
#define STEPS	  (1u << STEP_BITS)
#define BUCKETS	  ((64 - STEP_BITS + 1) * STEPS)
/* Up to this number, samples take less memory than a histogram, regardless of the pool. */
#define ALWAYS_EXACT BUCKETS

static u32 bucket_of(u64 v)
{
	u32 shift;

	if (v < STEPS)
		return (u32)v;
	shift = 63 - (u32)__builtin_clzll(v) - STEP_BITS;
	return (shift + 1) * STEPS + (u32)((v >> shift) & (STEPS - 1));
}

/* Returns the middle of a bucket. */
static u64 bucket_value(u32 bucket)
{
	u32 shift;

	if (bucket < STEPS)
		return bucket;
	shift = bucket / STEPS - 1;
	return ((u64)(STEPS + bucket % STEPS) << shift) + ((1ull << shift) >> 1);
}

static int stats__to_histogram(struct stats *s, struct stats_pool *pool)
{
	u32 i;

	s->histogram = calloc(BUCKETS, sizeof(*s->histogram));
	if (!s->histogram)
		return -ENOMEM;
	for (i = 0; i < s->n; i++)
		s->histogram[bucket_of(s->samples[i])]++;
	free(s->samples);
	s->samples = NULL;
	pool->samples -= s->allocated;
	pool->approximate++;
	s->n = s->allocated = 0;
	return 0;
}

static int stats__grow(struct stats *s, struct stats_pool *pool)
{
	u32 n = s->allocated ? s->allocated * 2 : 16;
	u64 *samples;

	if (n > STATS_EXACT || (n > ALWAYS_EXACT && pool->samples + n - s->allocated > STATS_POOL))
		return stats__to_histogram(s, pool);
	samples = realloc(s->samples, n * sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	pool->samples += n - s->allocated;
	s->samples = samples;
	s->allocated = n;
	return 0;
}

int stats__add(struct stats *s, struct stats_pool *pool, u64 value)
{
	double delta;
	int err;

	if (!s->histogram && s->n == s->allocated) {
		err = stats__grow(s, pool);
		if (err)
			return err;
	}
	if (s->histogram)
		s->histogram[bucket_of(value)]++;
	else
		s->samples[s->n++] = value;
	s->sorted = false;
	if (!s->count || value < s->min)
		s->min = value;
	if (value > s->max)
		s->max = value;
	s->count++;
	s->total += value;
	delta = (double)value - s->mean;
	s->mean += delta / (double)s->count;
	s->m2 += delta * ((double)value - s->mean);
	return 0;
}

void stats__free(struct stats *s, struct stats_pool *pool)
{
	pool->samples -= s->allocated;
	free(s->samples);
	free(s->histogram);
	*s = (struct stats){ 0 };
}

bool stats__approximate(const struct stats *s)
{
	return s->histogram != NULL;
}

double stats__stddev(const struct stats *s)
{
	return s->count > 1 ? sqrt(s->m2 / (double)(s->count - 1)) : 0;
}

/* Returns the value of a rank from 0, limited to the smallest and largest sample. */
static u64 stats__at(struct stats *s, u64 rank)
{
	u64 v, seen = 0;
	u32 i;

	if (!s->count)
		return 0;
	if (!s->histogram) {
		if (!s->sorted)
			qsort(s->samples, s->n, sizeof(*s->samples), compare__u64);
		s->sorted = true;
		return s->samples[rank < s->n ? rank : s->n - 1];
	}
	for (i = 0; i < BUCKETS - 1; i++) {
		seen += s->histogram[i];
		if (seen > rank)
			break;
	}
	v = bucket_value(i);
	return v < s->min ? s->min : v > s->max ? s->max : v;
}

double stats__median(struct stats *s)
{
	u64 low, high;

	if (!s->count)
		return 0;
	low = stats__at(s, (s->count - 1) / 2);
	high = stats__at(s, s->count / 2);
	return (double)low + (double)(high - low) / 2;
}

u64 stats__percentile(struct stats *s, double percent)
{
	u64 rank = (u64)ceil(percent / 100 * (double)s->count);

	return stats__at(s, rank ? rank - 1 : 0);
}
