// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The test of chance at its limit, by the quantiles of Student's distribution for one in a million (both sides). */
#include "util/chance.h"
#include "test.h"

#include <math.h>

/* n numbers whose t is this: n / 2 times m + 1 and n / 2 times m - 1 */
static bool explains(u32 n, double t)
{
	double mean = t / sqrt(n - 1.0);

	return chance__explains(n, n * mean, n * (mean * mean + 1));
}

TEST(agrees_with_the_quantiles)
{
	/* by numerical integration of the density */
	static const struct {
		u32 n;
		double t;
	} quantiles[] = { { 10, 11.6368 }, { 16, 7.9032 }, { 30, 6.1701 }, { 100, 5.2172 }, { 10000, 4.8947 } };

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
		CHECK(explains(quantiles[i].n, 0.97 * quantiles[i].t));
		CHECK(!explains(quantiles[i].n, 1.03 * quantiles[i].t));
		CHECK(explains(quantiles[i].n, -0.97 * quantiles[i].t));
		CHECK(!explains(quantiles[i].n, -1.03 * quantiles[i].t));
	}
}

TEST(few_and_equal_numbers)
{
	CHECK(chance__explains(0, 0, 0));
	CHECK(chance__explains(3, 3, 3));
	CHECK(!chance__explains(4, 4, 4));
	CHECK(chance__explains(16, 0, 0));
	CHECK(chance__explains(16, 0, 5));
	/* one of many */
	CHECK(chance__explains(1000, 1, 1));
}

TEST_MAIN()
