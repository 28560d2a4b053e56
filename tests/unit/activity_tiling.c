// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Activity: intervals tile and sum up equally for any windows, orders of events and damaged files. */
#include "activity_support.h"
#include "random.h"

/* Six threads that alternately run and wait, with calls in between. */
static u32 make_up(struct record *records, u32 max)
{
	u64 at[6];
	u32 n = 0;

	for (u32 t = 0; t < 6; t++)
		at[t] = 10000 + pick(50);
	for (u32 t = 0; n + 3 < max; t = (t + 1) % 6) {
		u64 run = at[t] + 1 + pick(100), off = run + 1 + pick(200);

		records[n++] = (struct record){ .start = at[t], .time = run, .pid = 1, .tid = t, .id = RUN };
		records[n++] = (struct record){ .start = run,
						.time = off,
						.pid = 1,
						.tid = t,
						.id = OFF,
						.state = pick(3),
						.wake = pick(3) ? run + pick((u32)(off - run)) : 0 };
		if (!pick(3))
			records[n++] = (struct record){ .start = run - pick(20),
							.time = run + pick(150),
							.pid = 1,
							.tid = t,
							.id = pick(2) ? CUDA : GIL };
		/* sometimes the activity is unknown for a while */
		at[t] = off + (pick(4) ? 0 : pick(300));
	}
	return n;
}

TEST(sums_do_not_depend_on_windows)
{
	static const u32 windows[] = { 1, 2, 7, 50, 100000 };
	static struct record records[900];
	u32 n = make_up(records, 900);
	u64 run[8] = { 0 }, off[8] = { 0 };
	struct read first;

	for (u32 i = 0; i < n; i++)
		if (records[i].id == RUN || records[i].id == OFF)
			(records[i].id == RUN ? run : off)[records[i].tid] += records[i].time - records[i].start;
	/* events in a file are not ordered by time */
	for (u32 i = n; i > 1; i--) {
		u32 other = pick(i);
		struct record swapped = records[i - 1];

		records[i - 1] = records[other];
		records[other] = swapped;
	}
	REQUIRE(prepare(records, n));
	read_all(9, ACTIVITY_IN_CALLS, 100000);
	first = r;
	for (u32 w = 0; w < 5; w++) {
		bool same = true, exact = true;

		read_all(9, ACTIVITY_IN_CALLS, windows[w]);
		for (u32 t = 0; t < 6; t++) {
			same &= !memcmp(r.states[t], first.states[t], sizeof(r.states[t])) && r.sum[t] == first.sum[t];
			exact &= r.states[t][ACTIVITY_RUNNING] == run[t] &&
				 r.states[t][ACTIVITY_RUNNABLE] + r.states[t][ACTIVITY_BLOCKED] == off[t] &&
				 r.begun[t] == first.begun[t];
		}
		CHECK(!r.torn);
		CHECK(same);
		CHECK(exact);
	}
	query.from = 11000;
	query.to = 12000;
	read_all(9, 0, 10);
	CHECK(!r.torn && r.sum[0] == 1000 && r.sum[5] == 1000);
	forget();
}

/* A query of a time must return the intervals that reading this time returns. */
static bool is_same_at_once(u64 from, u64 ns)
{
	struct read whole;
	struct activity *a;
	bool same = true;

	query.from = from;
	query.to = from + ns;
	read_all(9, 0, 100000);
	whole = r;
	query.from = query.to = 0;
	r = (struct read){ .tid = 9 };
	if (activity__new(&a, &query, 0) || activity__load(a, 5000, 10000))
		return false;
	r.activity = a;
	for (u32 t = 0; t < 4; t++) {
		same &= !activity__of(a, 1, t, from, from + ns, take, NULL);
		/* a thread that has no span in this time is not read */
		same &= !whole.sum[t] || !memcmp(whole.states[t], r.states[t], sizeof(r.states[t]));
	}
	activity__free(a);
	return same && !r.torn;
}

/* A file may have invalid spans: they overlap, end before they begin, or have a wake-up outside the span. */
TEST(intervals_tile_for_any_file)
{
	static struct record records[600];
	bool torn = false, different = false;

	for (u32 round = 0; round < 8; round++) {
		for (u32 i = 0; i < 600; i++) {
			static const u16 ids[] = { RUN, OFF, CUDA, GIL };
			u64 start = 5000 + pick(3000);

			records[i] = (struct record){ .start = start,
						      .time = 5000 + pick(10) * pick(400),
						      .pid = 1,
						      .tid = pick(4),
						      .id = ids[pick(4)],
						      .state = pick(12),
						      .wake = pick(4) ? 4900 + pick(3500) : 0 };
		}
		REQUIRE(prepare(records, 600));
		for (u32 flags = 0; flags < 8; flags++) {
			read_all(9, flags, 1 + pick(700));
			torn |= r.torn;
			for (u32 t = 1; t < 4; t++)
				torn |= r.at[t] != r.at[0];
		}
		for (u32 i = 0; i < 20; i++)
			different |= !is_same_at_once(5000 + pick(2000), 1 + pick(1000));
		forget();
	}
	CHECK(!torn);
	CHECK(!different);
}

/* The moments of a damaged trace may be any numbers: steps through its time must not wrap around. */
TEST(the_last_moment_may_be_any_number)
{
	for (u64 last = ~0ull - 2; last; last = last == ~0ull ? 0 : last + 1) {
		const struct record records[] = {
			{ .start = 1000, .time = 2000, .pid = 1, .tid = 1, .id = RUN },
			{ .start = last - 500, .time = last, .pid = 1, .tid = 1, .id = RUN },
		};

		REQUIRE(prepare(records, 2));
		for (u32 window = 1; window < 4; window++) {
			read_all(1, 0, window);
			CHECK(!r.torn && r.states[1][ACTIVITY_RUNNING] == 1500);
		}
		forget();
	}
}

TEST_MAIN()
