// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/chance.h"

#include <math.h>

/* That many standard deviations from the mean, on either side, are one of a million normally distributed numbers. */
#define DEVIATIONS 4.892

/* With fewer numbers the approximation below is wrong. */
#define NUMBERS_MIN 4

bool chance__explains(u32 n, double sum, double squares)
{
	double freedom = n - 1.0, above_mean = squares - sum * sum / n, deviations;

	if (n < NUMBERS_MIN || sum == 0)
		return true;
	/* t^2 / freedom; rounding may make numbers that are all equal spread a little, or less than not at all */
	if (above_mean <= 1e-9 * squares)
		return false;
	/* D. L. Wallace, Bounds on normal approximations to Student's distribution, 1959 */
	deviations = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(sum * sum / n / above_mean));
	return deviations < DEVIATIONS;
}
