// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The time that `record --inject` waits for slow processes: a budget per user, and a total limit. */
#include "cmd/inject_budget.h"
#include "test.h"

#define S 1000000000ULL

TEST(a_budget_per_user_and_a_total_limit)
{
	struct inject_budget b = {};

	for (u32 i = 0; i < 1000; i++)
		inject_budget__add(&b, 1, S - 1, true);
	CHECK(inject_budget__turn(&b, 1) == INJECT_TURN_FULL && !b.n);
	inject_budget__add(&b, 1, 5 * S, true);
	CHECK(inject_budget__turn(&b, 1) == INJECT_TURN_SHORT);
	CHECK(inject_budget__turn(&b, 2) == INJECT_TURN_FULL);
	inject_budget__add(&b, 1, S, true);
	inject_budget__add(&b, 1, S, true);
	CHECK(inject_budget__turn(&b, 1) == INJECT_TURN_USER_SPENT);
	for (u32 i = 0; i < 6; i++)
		inject_budget__add(&b, 2, 4 * S, false);
	CHECK(inject_budget__turn(&b, 2) == INJECT_TURN_FULL);
	inject_budget__add(&b, 2, 6 * S, false);
	CHECK(inject_budget__turn(&b, 2) == INJECT_TURN_USER_SPENT);
	CHECK(inject_budget__turn(&b, 3) == INJECT_TURN_FULL);
	for (u32 uid = 10; b.slow_ns < INJECT_BUDGET_ALL_S * S; uid++)
		inject_budget__add(&b, uid, S, true);
	CHECK(inject_budget__turn(&b, 3) == INJECT_TURN_ALL_SPENT);
	CHECK(b.n <= INJECT_BUDGET_ALL_S);
	inject_budget__free(&b);
}

TEST_MAIN()
