// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Statistics are exact for few samples, and within 0.4% for many. */
#include <math.h>

#include "model/stats.h"
#include "test.h"

TEST(no_samples)
{
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };

	CHECK(stats__median(&s) == 0 && stats__percentile(&s, 99) == 0 && stats__stddev(&s) == 0);
	stats__free(&s, &pool);
}

TEST(one_value)
{
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };

	CHECK(!stats__add(&s, &pool, 42));
	CHECK(s.count == 1 && s.total == 42 && s.min == 42 && s.max == 42 && s.mean == 42);
	CHECK(stats__median(&s) == 42 && stats__percentile(&s, 99) == 42 && stats__stddev(&s) == 0);
	stats__free(&s, &pool);
	CHECK(pool.samples == 0);
}

TEST(known_values)
{
	/* mean 5, sum of squares of the differences 32 */
	static const u64 values[] = { 9, 2, 4, 5, 4, 7, 4, 5 };
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };
	size_t i;

	for (i = 0; i < 8; i++)
		CHECK(!stats__add(&s, &pool, values[i]));
	CHECK(s.total == 40 && s.min == 2 && s.max == 9 && fabs(s.mean - 5) < 1e-12);
	CHECK(stats__median(&s) == 4.5);
	CHECK(fabs(stats__stddev(&s) - sqrt(32.0 / 7)) < 1e-12);
	CHECK(stats__percentile(&s, 50) == 4 && stats__percentile(&s, 100) == 9 && stats__percentile(&s, 0) == 2);
	/* samples may be added after reading */
	CHECK(!stats__add(&s, &pool, 1));
	CHECK(stats__median(&s) == 4 && s.min == 1);
	stats__free(&s, &pool);
}

TEST(large_values_do_not_cancel)
{
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };

	CHECK(!stats__add(&s, &pool, 1000000000000001ull) && !stats__add(&s, &pool, 1000000000000002ull));
	CHECK(!stats__add(&s, &pool, 1000000000000003ull));
	CHECK(fabs(stats__stddev(&s) - 1) < 1e-9);
	CHECK(stats__median(&s) == 1000000000000002.0);
	stats__free(&s, &pool);
}

TEST(p99_is_the_nearest_rank)
{
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };
	u64 i;

	for (i = 1; i <= 100; i++)
		CHECK(!stats__add(&s, &pool, i));
	CHECK(stats__percentile(&s, 99) == 99 && stats__percentile(&s, 1) == 1);
	stats__free(&s, &pool);
}

TEST(many_values_are_exact_to_the_limit_and_close_beyond)
{
	struct stats_pool pool = { 0 };
	struct stats s = { 0 };
	u64 i, x = 1;
	bool added = true;

	/* uniform from 0 to 10^9: a full-period walk */
	for (i = 0; i < STATS_EXACT; i++, x = (x + 618033989) % 1000000007)
		added &= !stats__add(&s, &pool, x);
	CHECK(added && !stats__approximate(&s) && pool.samples == STATS_EXACT);
	for (i = 0; i < STATS_EXACT; i++, x = (x + 618033989) % 1000000007)
		added &= !stats__add(&s, &pool, x);
	CHECK(added && stats__approximate(&s) && pool.samples == 0 && pool.approximate == 1);
	CHECK(s.count == 2 * STATS_EXACT);
	CHECK(fabs(stats__median(&s) / 5e8 - 1) < 0.005);
	CHECK(fabs((double)stats__percentile(&s, 99) / 9.9e8 - 1) < 0.005);
	CHECK(stats__percentile(&s, 100) <= s.max && stats__percentile(&s, 0) >= s.min);
	stats__free(&s, &pool);
}

TEST(extreme_values)
{
	struct stats_pool pool = { .samples = STATS_POOL };
	struct stats s = { 0 };
	u32 i;

	/* the pool is full: this group becomes a histogram as soon as its samples would need more memory than one */
	for (i = 0; i < 20000; i++)
		REQUIRE(!stats__add(&s, &pool, i % 2 ? ~0ull : 0));
	CHECK(stats__approximate(&s));
	CHECK(stats__percentile(&s, 1) == 0 && stats__percentile(&s, 99) >= ~0ull / 1000 * 996);
	stats__free(&s, &pool);
	CHECK(pool.samples == STATS_POOL);
}

TEST_MAIN()
