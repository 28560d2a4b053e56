// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Activity: intervals of threads tile, also in a damaged file, and have the cause and the thread that ended them. */
#include "model/activity.h"
#include "test.h"
#include "trace_made.h"

/* clang-format off */
#define FIELD(name, size, offset, unit) \
	"{\"name\":\"" name "\",\"type\":\"unsigned\",\"size\":" #size ",\"offset\":" #offset ",\"unit\":\"" unit "\"}"
#define FIELDS \
	FIELD("time", 8, 0, "ns") "," FIELD("pid", 4, 8, "") "," FIELD("tid", 4, 12, "") "," FIELD("id", 2, 16, "") "," \
	FIELD("probe", 2, 18, "") "," FIELD("cpu", 2, 20, "") "," FIELD("flags", 2, 22, "") "," FIELD("start", 8, 24, "ns")
/* One struct for all kinds: each kind lists the fields that it uses. */
#define KIND(id, name, more) \
	"{\"id\":" #id ",\"name\":\"" name "\",\"doc\":\"\",\"size\":64,\"fields\":[" FIELDS more "]}"
#define SCHED "," FIELD("state", 4, 32, "") "," FIELD("waker_pid", 4, 36, "") "," FIELD("waker_tid", 4, 40, "")
#define WAIT  "," FIELD("stack", 4, 44, "stack")

static const char schema_json[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true},"
	"{\"id\":2,\"name\":\"sched\",\"doc\":\"\",\"default\":false}],\"options\":[],\"enums\":[],\"events\":["
	"{\"id\":3,\"name\":\"meta_loss\",\"doc\":\"\",\"size\":64,\"fields\":["
	FIELD("time", 8, 0, "ns") "," FIELD("pid", 4, 8, "") "," FIELD("tid", 4, 12, "") "," FIELD("id", 2, 16, "") ","
	FIELD("probe", 2, 18, "") "," FIELD("cpu", 2, 20, "") "," FIELD("flags", 2, 22, "") "," FIELD("first", 8, 24, "moment") "," FIELD("last", 8, 48, "moment") "," FIELD("family", 4, 32, "") ","
	FIELD("reason", 4, 36, "") "," FIELD("count", 4, 40, "") "]},"
	KIND(513, "sched_run", SCHED) ","
	KIND(514, "sched_off", SCHED "," FIELD("wake", 8, 48, "moment")) ","
	KIND(515, "sched_throttle", "," FIELD("periods", 4, 32, "") "," FIELD("throttled_periods", 4, 36, "") ","
				    FIELD("since", 8, 48, "moment")) ","
	KIND(769, "cuda_sync", WAIT) ","
	KIND(1025, "gil_wait", WAIT "," FIELD("gil", 8, 48, "hex") "," FIELD("dropper", 4, 36, "") "," FIELD("holder", 4, 40, "")
			       "," FIELD("result", 4, 32, "") "," FIELD("number", 4, 56, "") "," FIELD("locked", 4, 60, ""))
	"]}";
/* clang-format on */

enum { LOSS = 3, RUN = 513, OFF = 514, THROTTLE = 515, CUDA = 769, GIL = 1025 };
enum { RUNNABLE, SLEEP, BLOCKED };
enum { RING_FULL = 1, READ = 9 }; /* enum loss_reason */
#define LOST(at, first, until, family, why)                                                                 \
	.time = (at), .id = LOSS, .start = (first), .wake = (until), .state = (family), .waker_pid = (why), \
	.waker_tid = 1

struct record {
	u64 time;
	u32 pid, tid;
	u16 id, probe, cpu, flags;
	u64 start;
	u32 state, waker_pid, waker_tid, stack;
	u64 wake;
	u32 number, locked;
};

static struct made_trace made;
static struct trace_facts facts;
static struct query query;

static void forget(void)
{
	made_trace__free(&made);
}

/* A trace of these events, read for its whole time. */
static bool prepare(const struct record *records, u32 n)
{
	if (!made_trace__of(&made, schema_json, records, sizeof(*records), n))
		return false;
	facts = (struct trace_facts){ 0 };
	query = (struct query){ .trace = made.trace, .names = made.names, .facts = &facts };
	return true;
}

/* The result of reading a trace */
static struct read {
	struct activity *activity;
	char text[4096];
	u32 tid; /* of the text */
	u64 at[8], sum[8]; /* of each thread: the end of the last interval, and the total */
	u64 states[8][4];
	u32 begun[8];
	u64 held[8]; /* of waits for a GIL, by the thread that held it */
	bool torn; /* an interval did not begin at the end of the last one, or was empty */
} r;

static int take(const struct activity_interval *i, void *arg)
{
	static const char *const states[] = { "run", "want", "wait", "?" };
	u32 t = i->thread.tid % 8;
	size_t used = strlen(r.text);

	r.torn |= i->from >= i->to || (r.at[t] && r.at[t] != i->from);
	r.at[t] = i->to;
	r.sum[t] += i->to - i->from;
	r.states[t][i->state] += i->to - i->from;
	r.begun[t] += i->begins;
	if (i->cause == ACTIVITY_GIL)
		r.held[i->by.tid % 8] += i->to - i->from;
	if (i->thread.tid != r.tid)
		return 0;
	snprintf(r.text + used, sizeof(r.text) - used, "%s%llu-%llu %s %s%s%s", used ? ", " : "", i->from, i->to,
		 states[i->state], activity__name(r.activity, i->reason), i->call ? " after " : "",
		 i->call ? activity__name(r.activity, i->call) : "");
	used = strlen(r.text);
	if (i->by.tid)
		snprintf(r.text + used, sizeof(r.text) - used, " by %u/%u", i->by.tid, i->by_stack);
	if (i->stack)
		snprintf(r.text + used + strlen(r.text + used), 32, " at %u", i->stack);
	return 0;
}

static const char *read_all(u32 tid, u32 flags, u32 window)
{
	u32 before = activity_window, most = activity_windows_max;
	int err;

	r = (struct read){ .tid = tid };
	activity_window = window;
	activity_windows_max = ~0u;
	err = activity__new(&r.activity, &query, flags);
	if (!err)
		err = activity__read(r.activity, take, NULL);
	activity__free(r.activity);
	activity_window = before;
	activity_windows_max = most;
	return err ? "failed" : r.text;
}

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
		/* events of the scheduler were lost in two short intervals, not in between; the loss at 1800 ended there */
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

static u32 seed = 1;

static u32 random_below(u32 n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Six threads that alternately run and wait, with calls in between. */
static u32 make_up(struct record *records, u32 max)
{
	u64 at[6];
	u32 n = 0;

	for (u32 t = 0; t < 6; t++)
		at[t] = 10000 + random_below(50);
	for (u32 t = 0; n + 3 < max; t = (t + 1) % 6) {
		u64 run = at[t] + 1 + random_below(100), off = run + 1 + random_below(200);

		records[n++] = (struct record){ .start = at[t], .time = run, .pid = 1, .tid = t, .id = RUN };
		records[n++] = (struct record){ .start = run,
						.time = off,
						.pid = 1,
						.tid = t,
						.id = OFF,
						.state = random_below(3),
						.wake = random_below(3) ? run + random_below((u32)(off - run)) : 0 };
		if (!random_below(3))
			records[n++] = (struct record){ .start = run - random_below(20),
							.time = run + random_below(150),
							.pid = 1,
							.tid = t,
							.id = random_below(2) ? CUDA : GIL };
		/* sometimes the activity is unknown for a while */
		at[t] = off + (random_below(4) ? 0 : random_below(300));
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
		u32 other = random_below(i);
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
			u64 start = 5000 + random_below(3000);

			records[i] = (struct record){ .start = start,
						      .time = 5000 + random_below(10) * random_below(400),
						      .pid = 1,
						      .tid = random_below(4),
						      .id = ids[random_below(4)],
						      .state = random_below(12),
						      .wake = random_below(4) ? 4900 + random_below(3500) : 0 };
		}
		REQUIRE(prepare(records, 600));
		for (u32 flags = 0; flags < 8; flags++) {
			read_all(9, flags, 1 + random_below(700));
			torn |= r.torn;
			for (u32 t = 1; t < 4; t++)
				torn |= r.at[t] != r.at[0];
		}
		for (u32 i = 0; i < 20; i++)
			different |= !is_same_at_once(5000 + random_below(2000), 1 + random_below(1000));
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
