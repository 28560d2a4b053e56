// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the time that a limit of cost leaves to measure, for threads whose probes cost a known share. */
#include "record/attach/slice_budget.h"

#include "test.h"

#define TICK   100000000.0 /* ns */
#define SECOND 1e9

/* Runs the budget as slices.c does, for `seconds`. Returns the measured part of the time. cost: ns per measured ns */
static double measured(struct slice_budget *b, double seconds, double run, double cost, double limit)
{
	double on = 0, slice = 0;
	bool paused = b->ns < 0;

	for (double t = 0; t < seconds * SECOND; t += TICK) {
		slice_budget__update(b, TICK, run * TICK, paused ? 0 : cost * TICK, limit);
		slice += TICK;
		on += paused ? 0 : TICK;
		if (slice >= 2 * TICK && paused != (b->ns < 0)) {
			paused = b->ns < 0;
			slice = 0;
		}
	}
	return on / (seconds * SECOND);
}

TEST(the_cost_is_limited)
{
	struct slice_budget b = { 0 };
	double part = measured(&b, 600, 1, 0.04, 0.01);

	CHECK(part > 0.23 && part < 0.27);
	b = (struct slice_budget){ 0 };
	part = measured(&b, 600, 8, 0.4, 0.01);
	CHECK(part > 0.18 && part < 0.22);
}

TEST(a_cost_below_the_limit_is_not_cut)
{
	struct slice_budget b = { 0 };

	CHECK(measured(&b, 60, 1, 0.009, 0.01) == 1);
	/* idle threads: a thousandth of a CPU is allowed */
	CHECK(measured(&b, 60, 0, 0.0009, 0.01) == 1);
}

/* After hours of a cost of 100 times the limit, all is measured again soon after the load ends. */
TEST(debt_is_bounded)
{
	struct slice_budget b = { 0 };
	double part = measured(&b, 7200, 1, 1, 0.01);

	CHECK(part > 0.009 && part < 0.04);
	measured(&b, 11, 1, 0, 0.01);
	CHECK(b.ns >= 0 && measured(&b, 60, 1, 0.001, 0.01) == 1);
}

TEST(unused_budget_is_bounded)
{
	struct slice_budget b = { 0 };

	measured(&b, 3600, 4, 0, 0.01);
	CHECK(b.ns == SECOND / 20);
}
TEST_MAIN()
