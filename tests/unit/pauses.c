// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pauses of merged traces, and the time of windows that a call overlaps. */
#include "model/facts.h"
#include "model/facts_private.h"
#include "model/pauses.h"
#include "model/query.h"
#include "util/array.h"

#include "test.h"

static bool is_window(const struct pauses *p, u32 i, u64 from, u64 to)
{
	return i < p->n_joint && p->joint[i].from == from && p->joint[i].to == to;
}

TEST(one_trace_keeps_its_pauses)
{
	struct pauses p = { 0 };

	REQUIRE(!pauses__recorded(&p, 0, 100, 900) && !pauses__stop(&p, 0, 1000));
	/* in parts, out of order, overlapping, empty, and beyond the end of the recording */
	REQUIRE(!pauses__add(&p, 0, 200, 300) && !pauses__add(&p, 0, 300, 400) && !pauses__add(&p, 0, 950, 1200));
	REQUIRE(!pauses__add(&p, 0, 120, 150) && !pauses__add(&p, 0, 350, 450) && !pauses__add(&p, 0, 500, 500));
	REQUIRE(!pauses__join(&p, false));
	CHECK(p.n_joint == 3 && is_window(&p, 0, 120, 150) && is_window(&p, 1, 200, 450) &&
	      is_window(&p, 2, 950, 1000));
	pauses__free(&p);
}

/* The first is paused alone until 300, then both are until 400; after its end at 600 the second is paused alone. */
TEST(a_pause_does_not_cut_another_trace)
{
	struct pauses p = { 0 };

	REQUIRE(!pauses__recorded(&p, 0, 0, 600) && !pauses__stop(&p, 0, 600));
	REQUIRE(!pauses__recorded(&p, 1, 100, 900) && !pauses__stop(&p, 1, 1000));
	REQUIRE(!pauses__add(&p, 0, 50, 400));
	REQUIRE(!pauses__add(&p, 1, 300, 450) && !pauses__add(&p, 1, 500, 700));
	REQUIRE(!pauses__join(&p, false));
	CHECK(p.n_joint == 3 && is_window(&p, 0, 50, 100) && is_window(&p, 1, 300, 400) && is_window(&p, 2, 600, 700));
	pauses__free(&p);
}

/* The same, and for each time how many of the traces that were live were paused. */
TEST(the_pauses_of_any_trace)
{
	static const struct joint_pause expected[] = {
		{ 50, 100, 1, 1 },  { 100, 300, 1, 2 }, { 300, 400, 1, 1 },
		{ 400, 450, 1, 2 }, { 500, 600, 1, 2 }, { 600, 700, 1, 1 },
	};
	struct pauses p = { 0 };

	REQUIRE(!pauses__recorded(&p, 0, 0, 600) && !pauses__stop(&p, 0, 600));
	REQUIRE(!pauses__recorded(&p, 1, 100, 900) && !pauses__stop(&p, 1, 1000));
	REQUIRE(!pauses__add(&p, 0, 50, 400));
	REQUIRE(!pauses__add(&p, 1, 300, 450) && !pauses__add(&p, 1, 500, 700));
	REQUIRE(!pauses__join(&p, true));
	CHECK(p.n_joint == ARRAY_LEN(expected) && !memcmp(p.joint, expected, sizeof(expected)));
	pauses__free(&p);
}

/* Beyond the limit pauses are joined with the last one of their trace, and none of another one. */
TEST(very_many_pauses)
{
	enum { MAX = 1 << 18 };
	struct pauses p = { 0 };

	REQUIRE(!pauses__recorded(&p, 0, 0, 10ull * MAX) && !pauses__recorded(&p, 1, 0, 10ull * MAX));
	for (u64 i = 0; i < MAX + 100; i++)
		REQUIRE(!pauses__add(&p, 0, 4 * i, 4 * i + 1));
	REQUIRE(p.is_full && p.n == MAX && !pauses__add(&p, 1, 0, 4 * MAX));
	CHECK(p.list[MAX - 1].time.from == 4ull * (MAX - 1) && p.list[MAX - 1].time.to == 4ull * (MAX + 99) + 1);
	pauses__free(&p);
}

/* The search agrees with a walk over all windows. */
TEST(time_inside_of_windows)
{
	enum { N = 7 };
	struct trace_window windows[N];
	u64 before[N];
	struct trace_facts f = { .windows = windows, .n_windows = N, .before = before };

	for (u64 i = 0; i < N; i++)
		windows[i] = (struct trace_window){ 10 + i * 10, 13 + i * 10 };
	trace_facts__widen(&f, 0, 0);
	for (u64 from = 0; from < 90; from++)
		for (u64 to = from; to < 90; to++) {
			u64 expected = 0;

			for (u64 t = from; t < to; t++)
				expected += t >= 10 && t < 80 && t % 10 < 3;
			CHECK(trace_facts__inside(&f, from, to) == expected);
		}
}

/* Two traces, from 0 to 40 and from 10 to 60: sums agree with a walk over all time. */
TEST(time_that_was_not_measured)
{
	struct trace_window window = { 0, 60 };
	u64 none = 0;
	struct trace_facts f = { .windows = &window, .n_windows = 1, .before = &none };
	struct pauses p = { 0 };

	REQUIRE(!pauses__recorded(&p, 0, 0, 40) && !pauses__stop(&p, 0, 40));
	REQUIRE(!pauses__recorded(&p, 1, 10, 60) && !pauses__stop(&p, 1, 60));
	REQUIRE(!pauses__add(&p, 0, 4, 20) && !pauses__add(&p, 1, 16, 24) && !pauses__add(&p, 1, 50, 52));
	REQUIRE(!facts_unmeasured__settle(&f, &p));
	for (u64 from = 0; from < 64; from += 2)
		for (u64 to = from; to < 64; to += 2) {
			u64 halves = 0, any = 0;

			for (u64 t = from; t < to; t++) {
				bool a = t >= 4 && t < 20, b = (t >= 16 && t < 24) || (t >= 50 && t < 52);
				bool both_live = t >= 10 && t < 40;

				halves += (a + b) * (both_live ? 1u : 2u);
				any += a || b;
			}
			CHECK(trace_facts__unmeasured(&f, from, to) == halves / 2);
			CHECK(trace_facts__is_unmeasured(&f, from, to) == (any > (to - from) / 2));
		}
	/* an unknown time that only touches a pause has another cause */
	CHECK(!trace_facts__is_unmeasured(&f, 22, 50) && trace_facts__is_unmeasured(&f, 20, 26));
	pauses__free(&p);
	free(f.unmeasured);
	free(f.unmeasured_before);
}

TEST_MAIN()
