// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Short holds without a stack: they get that of another short hold of the same thread, and the segment says so. */
#include "model/gil_line.h"

#include <string.h>

#include "test.h"

#define MS 1000000ull

enum { HOLDER = 7, OTHER = 8, WAITER = 9 };

static struct gil_segment segments[16];
static u32 n;

static int keep(const struct gil_segment *p, void *arg)
{
	if (n < 16)
		segments[n++] = *p;
	return 0;
}

static struct gil_line *begin(void)
{
	static const struct gil_key gil = { 0x1000, 1, 0 };

	n = 0;
	return gil_line__new(&gil);
}

/* The waiter waits, the holder drops the GIL at the end with that stack. */
static void hold(struct gil_line *l, u64 from, u64 to, u32 holder, u32 stack, bool is_short)
{
	struct gil_pending wait = {
		.tid = WAITER, .stack = 3, .start = from, .end = to, .attempt_start = from, .weight = 1
	};

	if (from == MS)
		CHECK(!gil_line__wait(l,
				      &(struct gil_pending){ .tid = WAITER, .start = from, .end = from, .weight = 1 }));
	CHECK(!gil_line__drop(l, to, holder, stack, is_short));
	CHECK(!gil_line__wait(l, &wait));
	CHECK(!gil_line__take(l, to, WAITER, holder));
}

static void cut(struct gil_line *l)
{
	CHECK(!gil_line__cut(l, 0, true, keep, NULL));
	gil_line__free(l);
}

static const struct gil_segment *at(u64 from)
{
	static const struct gil_segment none;

	for (u32 i = 0; i < n; i++)
		if (segments[i].from == from && segments[i].to > from)
			return &segments[i];
	return &none;
}

TEST(short_holds)
{
	struct gil_line *l = begin();

	REQUIRE(l);
	hold(l, 1 * MS, 2 * MS, HOLDER, 20, true);
	hold(l, 3 * MS, 4 * MS, HOLDER, 0, false);
	hold(l, 5 * MS, 6 * MS, HOLDER, 30, false); /* a long one represents no other */
	hold(l, 7 * MS, 8 * MS, HOLDER, 0, false);
	hold(l, 9 * MS, 10 * MS, OTHER, 0, false); /* of this thread no stack is known */
	cut(l);
	CHECK(at(1 * MS)->holder_stack == 20 && !at(1 * MS)->estimated);
	CHECK(at(3 * MS)->holder_stack == 20 && at(3 * MS)->estimated);
	CHECK(at(5 * MS)->holder_stack == 30 && !at(5 * MS)->estimated);
	CHECK(at(7 * MS)->holder_stack == 20 && at(7 * MS)->estimated);
	CHECK(at(9 * MS)->holder == OTHER && !at(9 * MS)->holder_stack && !at(9 * MS)->estimated);
}

/* A drop soon after a time-out ends the same hold, whose stack was read there. */
TEST(drop_after_time_out)
{
	struct gil_line *l = begin();

	REQUIRE(l);
	CHECK(!gil_line__wait(l, &(struct gil_pending){ .tid = WAITER, .start = MS, .end = 6 * MS, .weight = 1 }));
	CHECK(!gil_line__seen(l, 6 * MS, HOLDER, 40));
	CHECK(!gil_line__drop(l, 7 * MS, HOLDER, 0, false));
	CHECK(!gil_line__wait(l, &(struct gil_pending){ .tid = WAITER, .start = 6 * MS, .end = 7 * MS, .weight = 1 }));
	cut(l);
	CHECK(at(6 * MS)->holder == HOLDER && at(6 * MS)->holder_stack == 40 && !at(6 * MS)->estimated);
}

TEST_MAIN()
