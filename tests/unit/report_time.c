// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --time, dates and seconds. */
#include <time.h>

#include "model/clock.h"
#include "output/text.h"
#include "test.h"

#define SECOND 1000000000ull
#define START  (1000 * SECOND)

/* 2026-01-01 12:00:00.25 UTC */
static const struct trace_head head = { .monotonic = START, .realtime = 1767268800 * SECOND + SECOND / 4 };

static char why[256];

static bool range(const char *text, u64 from, u64 to)
{
	u64 a, b;
	int err = clock__parse_range(text, START, &head, &a, &b, why, sizeof(why));

	if (!err && a == from && b == to)
		return true;
	printf("# %s: error %d, %llu to %llu\n", text, err, a, b);
	return false;
}

static bool refused(const char *text)
{
	u64 a, b;

	why[0] = '\0';
	return clock__parse_range(text, START, &head, &a, &b, why, sizeof(why)) && why[0];
}

TEST(seconds)
{
	CHECK(range("12.5..14", START + 12500000000, START + 14 * SECOND));
	CHECK(range("..3", 0, START + 3 * SECOND));
	CHECK(range("3..", START + 3 * SECOND, 0));
	CHECK(range("0..0.000000001", START, START + 1));
	CHECK(range(".5...75", START + SECOND / 2, START + 750000000));
	CHECK(range("0.1234567891..1", START + 123456789, START + SECOND));
}

TEST(time_of_day)
{
	setenv("TZ", "UTC", 1);
	tzset();
	CHECK(range("12:00:01..12:00:02.5", START + 750000000, START + 2250000000));
	CHECK(range("12:00:01..3", START + 750000000, START + 3 * SECOND));
	/* a time before the start means the start */
	CHECK(range("11:59:59..12:00:01", START, START + 750000000));
	/* a time of day long before the start is on the next day */
	CHECK(range("23:59:59..00:00:01", START + 43198750000000, START + 43200750000000));
	setenv("TZ", "UTC-2", 1);
	tzset();
	CHECK(range("14:00:01..14:00:02", START + 750000000, START + 1750000000));
}

TEST(invalid_times_are_refused)
{
	static const char *const bad[] = { "",
					   "..",
					   "3",
					   "3.",
					   "a..b",
					   "3..2",
					   "3..3",
					   "..0",
					   "1..2x",
					   "-1..2",
					   "1...2..",
					   "25:00:00..",
					   "12:60:00..",
					   "12:00..",
					   "12:00:00:00..",
					   "99999999999999999999..",
					   " 1..2",
					   "1..2..3" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!refused(bad[i]))
			printf("# taken: '%s'\n", bad[i]);
		CHECK(refused(bad[i]));
	}
}

TEST(times_are_written)
{
	char buf[64];

	setenv("TZ", "UTC", 1);
	tzset();
	CHECK(!strcmp(text__date(buf, sizeof(buf), head.realtime), "2026-01-01 12:00:00.250 +0000"));
	CHECK(!strcmp(text__seconds(buf, sizeof(buf), START + 1, START, 9), "0.000000001"));
	CHECK(!strcmp(text__seconds(buf, sizeof(buf), START - SECOND / 2, START, 3), "-0.500"));
	CHECK(!strcmp(text__seconds(buf, sizeof(buf), START + 61 * SECOND, START, 1), "61.0"));
}

TEST_MAIN()
