// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How large a difference between two traces is by chance. */
#include <math.h>
#include <string.h>

#include "diff/noise.h"
#include "test.h"

static bool is_near(double a, double b, double part)
{
	return fabs(a - b) <= part * fabs(b);
}

/* From a table of Student's t, both sides */
TEST(quantiles_are_those_of_the_tables)
{
	CHECK(is_near(noise__student(0.05, 1), 12.706, 1e-3));
	CHECK(is_near(noise__student(0.05, 2), 4.3027, 1e-3));
	CHECK(is_near(noise__student(0.05, 7), 2.3646, 1e-3));
	CHECK(is_near(noise__student(0.001, 7), 5.4079, 1e-3));
	CHECK(is_near(noise__student(0.0001, 15), 5.2391, 1e-3));
	CHECK(is_near(noise__student(0.05, 31), 2.0395, 1e-3));
	CHECK(is_near(noise__student(0.001, 60), 3.4602, 1e-3));
}

/* Numbers that look random and are the same in each run */
static double next(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return (double)(*state >> 8) / (1 << 24);
}

static void fill(struct noise_sum *s, u32 *state, double mean, double spread)
{
	memset(s, 0, sizeof(*s));
	for (u32 i = 0; i < NOISE_BINS; i++)
		s->bins[i] = (float)(mean + spread * (next(state) - 0.5));
}

/*
 * Of 2000 pairs without a difference some 5% exceed the interval of 95%, and fewer, as the widest of several is taken.
 */
TEST(equal_sums_rarely_exceed_the_noise)
{
	struct noise_sum a, b;
	u32 state = 1, exceeded = 0;

	for (u32 i = 0; i < 2000; i++) {
		fill(&a, &state, 1, 1);
		fill(&b, &state, 1, 1);
		exceeded += fabs(noise_sum__total(&a) - noise_sum__total(&b)) > noise__of(&a, 1, &b, 1, 0.05);
	}
	CHECK(exceeded < 100);
	CHECK(exceeded > 5);
}

/* What varies slowly has as much noise as its longest blocks. */
TEST(neighbouring_slices_are_not_independent)
{
	struct noise_sum fast = { 0 }, slow = { 0 };

	for (u32 i = 0; i < NOISE_BINS; i++) {
		fast.bins[i] = i % 2;
		slow.bins[i] = i / 4 % 2;
	}
	CHECK(noise_sum__total(&fast) == noise_sum__total(&slow));
	CHECK(noise__of(&slow, 1, &slow, 1, 0.05) > 1.5 * noise__of(&fast, 1, &fast, 1, 0.05));
}

TEST(a_difference_far_above_the_noise_is_seen)
{
	struct noise_sum a, b;
	u32 state = 7;

	fill(&a, &state, 1, 0.2);
	fill(&b, &state, 2, 0.2);
	CHECK(noise_sum__total(&b) - noise_sum__total(&a) > noise__of(&a, 1, &b, 1, 1e-5));
}

/* Where every slice is the same, counting alone is noise. */
TEST(counting_is_noise)
{
	struct noise_sum a = { .counting = 100 }, b = { .counting = 100 };

	for (u32 i = 0; i < NOISE_BINS; i++)
		a.bins[i] = b.bins[i] = 3;
	CHECK(is_near(noise__of(&a, 1, &b, 1, 0.05), 1.96 * sqrt(200), 1e-3));
	CHECK(is_near(noise__of(&a, 10, &b, 10, 0.05), 1.96 * sqrt(2), 1e-3));
}

/* The mean duration of calls does not vary where only their number does. */
TEST(a_ratio_varies_as_the_ratio_does)
{
	struct noise_sum ns = { 0 }, calls = { 0 }, mean;

	for (u32 i = 0; i < NOISE_BINS; i++) {
		calls.bins[i] = (float)(1 + i % 5);
		ns.bins[i] = 250 * calls.bins[i];
	}
	noise_sum__ratio(&mean, &ns, &calls, 1);
	CHECK(is_near(noise_sum__total(&mean), 250, 1e-4));
	CHECK(noise__of(&mean, 1, &mean, 1, 0.05) < 0.1);
	memset(&calls, 0, sizeof(calls));
	noise_sum__ratio(&mean, &ns, &calls, 1);
	CHECK(noise_sum__total(&mean) == 0);
}

TEST_MAIN()
