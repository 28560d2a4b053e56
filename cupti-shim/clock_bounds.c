// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Bounds of the difference of two clocks, from earlier bounds. The difference is nearly linear: its rate is within
 * RATE_MAX of 0, and changes by at most RATE_CHANGE per second, so that a bound gets wider with its age, and finally
 * useless.
 */
#include "clock.h"

#include <string.h>

#define RATE_MAX    1e-3
#define RATE_CHANGE 100e-9 /* per second: several times what a quartz that warms up does in the worst case */
#define OLD	    4e9 /* ns */

/* The possible change of the rate since then. */
static double slack(double age)
{
	return age * age / 1e9 * RATE_CHANGE / 2;
}

static double age_of(const struct clock_bound *b, uint64_t device)
{
	return (double)(int64_t)(device - b->device);
}

/* Uses the line through the low of an older bound and the high of a newer one, and the other way round. */
static void narrow(const struct clock_bound *old, const struct clock_bound *young, uint64_t device, double *low,
		   double *high)
{
	double to_old = age_of(old, device), to_young = age_of(young, device), ahead;
	double slack_old = slack(to_old), slack_young = slack(to_young), rise, fall;

	if (to_old <= to_young)
		return;
	ahead = to_young / (to_old - to_young);
	rise = young->high + slack_young - old->low + slack_old;
	fall = young->low - slack_young - old->high - slack_old;
	if (young->high + slack_young + rise * ahead < *high)
		*high = young->high + slack_young + rise * ahead;
	if (young->low - slack_young + fall * ahead > *low)
		*low = young->low - slack_young + fall * ahead;
}

bool bounds__at(const struct clock_bounds *b, uint64_t device, double *low, double *high)
{
	uint32_t i, j;

	*low = -1e18;
	*high = 1e18;
	for (i = 0; i < b->n; i++) {
		const struct clock_bound *x = &b->list[i];
		double age = age_of(x, device), loose = age * RATE_MAX;

		if (x->high + loose < *high)
			*high = x->high + loose;
		if (x->low - loose > *low)
			*low = x->low - loose;
		for (j = 0; j < i; j++)
			narrow(&b->list[j], x, device, low, high);
	}
	return *low <= *high;
}

void bounds__rate(const struct clock_bounds *b, double *least, double *most)
{
	uint64_t now = b->n ? b->list[b->n - 1].device : 0;
	uint32_t i, j;

	*least = -RATE_MAX;
	*most = RATE_MAX;
	for (i = 1; i < b->n; i++)
		for (j = 0; j < i; j++) {
			const struct clock_bound *old = &b->list[j], *young = &b->list[i];
			double width = age_of(old, now) - age_of(young, now);
			double loose = slack(age_of(old, now)) + slack(age_of(young, now));

			if (width <= 0)
				continue;
			if ((young->high - old->low + loose) / width < *most)
				*most = (young->high - old->low + loose) / width;
			if ((young->low - old->high - loose) / width > *least)
				*least = (young->low - old->high - loose) / width;
		}
}

void bounds__add(struct clock_bounds *b, uint64_t device, double low, double high)
{
	uint32_t old = 0;

	while (old < b->n && (old + CLOCK_BOUNDS <= b->n || age_of(&b->list[old], device) > OLD))
		old++;
	memmove(b->list, b->list + old, (b->n - old) * sizeof(b->list[0]));
	b->n -= old;
	b->list[b->n++] = (struct clock_bound){ device, low, high };
}
