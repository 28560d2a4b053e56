// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Activity: intervals of threads tile, also in a damaged file, and have the cause and the thread that ended them. */
#include "activity_support.h"

TEST(has_state_and_cause)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1100, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1100, .time = 1300, .wake = 1250, .pid = 1, .tid = 1, .id = OFF, .state = SLEEP },
		{ .start = 1120, .time = 1240, .pid = 1, .tid = 1, .id = CUDA },
		{ .start = 1300, .time = 1400, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1310, .time = 1320, .pid = 1, .tid = 1, .id = CUDA },
		{ .start = 1400, .time = 1450, .wake = 1400, .pid = 1, .tid = 1, .id = OFF, .state = RUNNABLE },
		/* its activity is unknown until 1600 */
		{ .start = 1600, .time = 1700, .pid = 1, .tid = 1, .id = OFF, .state = BLOCKED },
		{ .start = 1000, .time = 1500, .pid = 1, .tid = 2, .id = RUN },
		{ .start = 1000, .time = 1010, .pid = 1, .tid = 3, .id = CUDA },
	};

	REQUIRE(prepare(records, sizeof(records) / sizeof(*records)));
	CHECK_TEXT(
		read_all(1, 0, 1000),
		"1000-1100 run on a CPU, 1100-1120 wait asleep (cause not recorded), 1120-1240 wait cuda_sync, "
		"1240-1250 wait asleep (cause not recorded), 1250-1300 want waiting for a CPU, 1300-1400 run on a CPU, "
		"1400-1450 want waiting for a CPU, 1450-1600 ? not known (not followed), "
		"1600-1700 wait uninterruptible (cause not recorded), 1700-1701 ? not known (not followed)");
	CHECK(!r.torn && r.sum[1] == 701 && r.sum[2] == 701 && !r.sum[3]);
	CHECK(r.begun[1] == 10);
	CHECK_TEXT(
		read_all(1, ACTIVITY_IN_CALLS, 1000),
		"1000-1100 run on a CPU, 1100-1120 wait asleep (cause not recorded), 1120-1240 wait cuda_sync, "
		"1240-1250 wait asleep (cause not recorded), 1250-1300 want waiting for a CPU, 1300-1310 run on a CPU, "
		"1310-1320 run cuda_sync, 1320-1400 run on a CPU, 1400-1450 want waiting for a CPU, "
		"1450-1600 ? not known (not followed), 1600-1700 wait uninterruptible (cause not recorded), "
		"1700-1701 ? not known (not followed)");
	/* a thread without scheduler events counts only if calls are requested */
	CHECK_TEXT(read_all(3, ACTIVITY_IN_CALLS, 1000), "1000-1010 ? cuda_sync, 1010-1701 ? not known (not followed)");
	forget();
}

TEST(can_be_read_again)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1400, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1000, .time = 1300, .wake = 1300, .pid = 1, .tid = 2, .id = OFF, .state = SLEEP },
		{ .start = 1010, .time = 1290, .pid = 1, .tid = 2, .id = GIL, .waker_tid = 1, .number = 1 },
		{ .start = 1300, .time = 1500, .pid = 1, .tid = 2, .id = RUN },
	};
	struct read first;

	REQUIRE(prepare(records, sizeof(records) / sizeof(*records)));
	r = (struct read){ .tid = 2 };
	REQUIRE(!activity__new(&r.activity, &query, ACTIVITY_DETAILS | ACTIVITY_HOLDERS));
	REQUIRE(!activity__read(r.activity, take, NULL));
	first = r;
	/* a part of it is loaded in between, of one thread */
	activity__remove_threads(r.activity);
	REQUIRE(!activity__add_thread(r.activity, 1, 1) && !activity__load(r.activity, 1100, 1200));
	r = (struct read){ .tid = 2, .activity = first.activity };
	REQUIRE(!activity__read(r.activity, take, NULL));
	CHECK_TEXT(r.text, first.text);
	CHECK(!r.torn && r.sum[1] && r.sum[2] && !memcmp(&r, &first, sizeof(r)));
	activity__free(r.activity);
	forget();
}

TEST(a_gap_with_lost_records_has_that_cause)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1100, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1200, .time = 1300, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1400, .time = 1500, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1600, .time = 1700, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1800, .time = 1900, .pid = 1, .tid = 1, .id = RUN },
		/* of another family */
		{ LOST(2000, 1000, 2000, 3, RING_FULL) },
		/*
		 * events of the scheduler were lost in two short intervals, not in between; the loss at 1800 ended
		 * there
		 */
		{ LOST(1999, 1310, 1320, 2, RING_FULL) },
		{ LOST(2000, 1800, 1800, 2, RING_FULL) },
		/* a record that lacks only a detail is used */
		{ LOST(2000, 1500, 1510, 2, READ) },
	};

	REQUIRE(prepare(records, sizeof(records) / sizeof(*records)));
	read_all(1, 0, 1000);
	CHECK(strstr(r.text, "1000-1100 run on a CPU, 1100-1200 ? not known (not followed), 1200-1300 run on a CPU, "
			     "1300-1400 ? not known (records were lost), 1400-1500 run on a CPU, "
			     "1500-1600 ? not known (not followed), 1600-1700 run on a CPU, "
			     "1700-1800 ? not known (records were lost), 1800-1900 run on a CPU, ") == r.text);
	forget();
}

TEST(a_used_up_quota_is_the_cause)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1100, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1100, .time = 1200, .wake = 1100, .pid = 1, .tid = 1, .id = OFF, .state = RUNNABLE },
		{ .start = 1200, .time = 1300, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1300, .time = 1500, .wake = 1300, .pid = 1, .tid = 1, .id = OFF, .state = RUNNABLE },
		{ .start = 1500, .time = 1600, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1100, .time = 1200, .wake = 1100, .pid = 2, .tid = 2, .id = OFF, .state = RUNNABLE },
		/* throttled in six of ten periods in [1000, 1250), in four later, and never for process 2 */
		{ .start = 1250,
		  .time = 1250,
		  .pid = 1,
		  .tid = 1,
		  .id = THROTTLE,
		  .state = 10,
		  .waker_pid = 6,
		  .wake = 1000 },
		{ .start = 1500,
		  .time = 1500,
		  .pid = 1,
		  .tid = 1,
		  .id = THROTTLE,
		  .state = 10,
		  .waker_pid = 4,
		  .wake = 1250 },
	};

	REQUIRE(prepare(records, sizeof(records) / sizeof(*records)));
	CHECK_TEXT(read_all(1, 0, 1000),
		   "1000-1100 run on a CPU, 1100-1200 want throttled by its CPU quota, 1200-1300 run on a CPU, "
		   "1300-1500 want waiting for a CPU, 1500-1600 run on a CPU, 1600-1601 ? not known (not followed)");
	read_all(2, 0, 1000);
	CHECK(strstr(r.text, "1100-1200 want waiting for a CPU,") && !strstr(r.text, "quota"));
	forget();
}

TEST(without_the_scheduler_calls_are_known)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1100, .pid = 1, .tid = 1, .id = CUDA },
		{ .start = 1200, .time = 1300, .pid = 1, .tid = 1, .id = CUDA },
	};

	REQUIRE(prepare(records, 2));
	CHECK_TEXT(read_all(1, ACTIVITY_IN_CALLS, 1000),
		   "1000-1100 ? cuda_sync, 1100-1200 ? not known (no scheduling was recorded), 1200-1300 ? cuda_sync, "
		   "1300-1301 ? not known (no scheduling was recorded)");
	CHECK_TEXT(read_all(1, 0, 1000), "");
	forget();
}

TEST(a_wait_for_the_gil_is_split_by_holders)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 2000, .pid = 1, .tid = 2, .id = RUN },
		/* thread 2 held it until 1400; the wait was then ended by 2's drop */
		{ .start = 1000,
		  .time = 1500,
		  .pid = 1,
		  .tid = 1,
		  .id = OFF,
		  .state = SLEEP,
		  .wake = 1450,
		  .waker_pid = 1,
		  .waker_tid = 2 },
		{ .start = 1100,
		  .time = 1300,
		  .pid = 1,
		  .tid = 1,
		  .id = GIL,
		  .state = 2,
		  .waker_tid = 2,
		  .stack = 7,
		  .wake = 0x10,
		  .number = 1,
		  .locked = 1 },
		{ .start = 1300,
		  .time = 1500,
		  .pid = 1,
		  .tid = 1,
		  .id = GIL,
		  .state = 1,
		  .waker_pid = 2,
		  .stack = 7,
		  .wake = 0x10,
		  .number = 2 },
		{ .start = 1500, .time = 2000, .pid = 1, .tid = 1, .id = RUN },
	};

	REQUIRE(prepare(records, sizeof(records) / sizeof(*records)));
	query.from = 1000;
	query.to = 2000;
	read_all(1, ACTIVITY_DETAILS | ACTIVITY_HOLDERS, 1000);
	CHECK(strstr(r.text, "1000-1100 wait asleep (cause not recorded) by 2/0, 1100-1300 wait GIL by 2/0 at 7"));
	CHECK(strstr(r.text, "1450-1500 want waiting for a CPU after GIL by 2/0 at 7, 1500-2000 run on a CPU"));
	CHECK(!r.torn && r.sum[1] == 1000);
	/* without details the same time is one wait */
	CHECK_TEXT(read_all(1, 0, 1000), "1000-1100 wait asleep (cause not recorded), 1100-1450 wait GIL, "
					 "1450-1500 want waiting for a CPU, 1500-2000 run on a CPU");
	forget();
}

#define MS 1000000ull

/* Thread 1 waits for the GIL 5 ms out of every 10, alternately held by 2 and 3, with a pause in the middle. */
TEST(holders_do_not_depend_on_windows)
{
	static const u32 windows[] = { 10, 100, 700 };
	static struct record records[2400];
	u64 at = 10000 * MS;
	struct read first;
	u32 n = 0;

	for (u32 i = 0; i < 800; i++, at += i == 400 ? 3000 * MS : 10 * MS) {
		struct record wait = {
			.start = at, .time = at + 5 * MS, .wake = at + 5 * MS, .pid = 1, .tid = 1, .id = OFF
		};

		wait.state = SLEEP;
		records[n++] = wait;
		records[n++] =
			(struct record){ .start = at + 5 * MS, .time = at + 10 * MS, .pid = 1, .tid = 1, .id = RUN };
		wait.id = GIL;
		wait.state = 1;
		wait.wake = 0x10;
		wait.waker_pid = 2 + i % 2; /* the dropper */
		wait.number = i;
		records[n++] = wait;
	}
	REQUIRE(prepare(records, n));
	read_all(9, ACTIVITY_DETAILS | ACTIVITY_HOLDERS, 100000);
	first = r;
	CHECK(first.held[2] == 2000 * MS && first.held[3] == 2000 * MS);
	for (u32 w = 0; w < 3; w++) {
		read_all(9, ACTIVITY_DETAILS | ACTIVITY_HOLDERS, windows[w]);
		CHECK(!r.torn && !memcmp(r.held, first.held, sizeof(r.held)));
	}
	forget();
}

TEST(queries_times_of_selected_threads)
{
	static const struct record records[] = {
		{ .start = 1000, .time = 1400, .pid = 1, .tid = 1, .id = RUN },
		{ .start = 1400, .time = 1900, .pid = 1, .tid = 1, .id = OFF, .state = SLEEP, .wake = 1800 },
		{ .start = 1000, .time = 1900, .pid = 1, .tid = 2, .id = RUN },
	};

	REQUIRE(prepare(records, 3));
	r = (struct read){ .tid = 1 };
	REQUIRE(!activity__new(&r.activity, &query, 0));
	REQUIRE(!activity__add_thread(r.activity, 1, 1));
	REQUIRE(!activity__load(r.activity, 1000, 2000));
	CHECK(!activity__of(r.activity, 1, 1, 1700, 1950, take, NULL));
	CHECK_TEXT(r.text, "1700-1800 wait asleep (cause not recorded), 1800-1900 want waiting for a CPU, "
			   "1900-1950 ? not known (not followed)");
	/* times may be queried in any order */
	r.at[1] = 0;
	*r.text = 0;
	CHECK(!activity__of(r.activity, 1, 1, 1350, 1450, take, NULL));
	CHECK_TEXT(r.text, "1350-1400 run on a CPU, 1400-1450 wait asleep (cause not recorded)");
	CHECK(!activity__of(r.activity, 1, 2, 1000, 1100, take, NULL));
	CHECK(r.states[2][ACTIVITY_UNKNOWN] == 100);
	activity__free(r.activity);
	forget();
}

TEST_MAIN()
