// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff/noise.h"

#include <math.h>
#include <string.h>

double noise_sum__total(const struct noise_sum *s)
{
	double sum = 0;

	for (u32 i = 0; i < NOISE_BINS; i++)
		sum += s->bins[i];
	return sum;
}

/* P(|t| > x): the finite series for whole degrees of freedom */
static double tails(double x, u32 freedom)
{
	double angle = atan2(x, sqrt(freedom)), c2 = cos(angle) * cos(angle);
	double term = freedom % 2 ? cos(angle) : 1, sum = freedom == 1 ? 0 : term;

	for (u32 i = freedom % 2 ? 3 : 2; i + 1 < freedom; i += 2) {
		term *= c2 * (i - 1) / i;
		sum += term;
	}
	sum *= sin(angle);
	return 1 - (freedom % 2 ? 2 / M_PI * (angle + sum) : sum);
}

/* The same for the normal distribution. */
static double normal_tails(double x)
{
	return erfc(x / M_SQRT2);
}

/* freedom 0: normal */
static double quantile(double p, u32 freedom)
{
	double low = 0, high = 1;

	/* tails() computes 1 minus a sum, so smaller values have no valid digits */
	p = p < 1e-13 ? 1e-13 : p;
	while (high < 1e9 && (freedom ? tails(high, freedom) : normal_tails(high)) > p)
		high *= 2;
	for (u32 i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if ((freedom ? tails(middle, freedom) : normal_tails(middle)) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

double noise__student(double p, u32 freedom)
{
	return quantile(p, freedom ? freedom : 1);
}

/* The variance of the sum of all bins, estimated from this number of blocks. */
static double variance(const struct noise_sum *s, u32 blocks)
{
	u32 per_block = NOISE_BINS / blocks;
	double mean = noise_sum__total(s) / blocks, squares = 0;

	for (u32 b = 0; b < blocks; b++) {
		double sum = 0;

		for (u32 i = 0; i < per_block; i++)
			sum += s->bins[b * per_block + i];
		squares += (sum - mean) * (sum - mean);
	}
	return squares / (blocks - 1) * blocks;
}

double noise__of(const struct noise_sum *a, double a_units, const struct noise_sum *b, double b_units, double p)
{
	double widest = 0, half;

	if (a_units <= 0 || b_units <= 0)
		return INFINITY;
	for (u32 blocks = NOISE_BINS; blocks >= NOISE_BINS / 4; blocks /= 2) {
		double va = variance(a, blocks) / a_units / a_units, vb = variance(b, blocks) / b_units / b_units;
		double both = va + vb, freedom; /* both: the variance of the difference; freedom: Welch's */

		if (both <= 0)
			continue;
		freedom = both * both / ((va * va + vb * vb) / (blocks - 1));
		/* if only one side varies, it is blocks - 1, computed as slightly more or less */
		half = noise__student(p, (u32)(freedom + 1e-6)) * sqrt(both);
		widest = half > widest ? half : widest;
	}
	half = quantile(p, 0) * sqrt(a->counting / a_units / a_units + b->counting / b_units / b_units);
	return half > widest ? half : widest;
}

void noise_sum__ratio(struct noise_sum *out, const struct noise_sum *n, const struct noise_sum *d, double scale)
{
	double top = noise_sum__total(n), bottom = noise_sum__total(d), ratio = bottom ? top / bottom : 0;

	memset(out, 0, sizeof(*out));
	for (u32 i = 0; bottom != 0 && i < NOISE_BINS; i++)
		out->bins[i] = (float)(scale * (ratio / NOISE_BINS + (n->bins[i] - ratio * d->bins[i]) / bottom));
	out->counting = bottom != 0 ? n->counting * scale * scale / bottom / bottom : 0;
}
