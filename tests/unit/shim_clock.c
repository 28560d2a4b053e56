// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shim's clock against simulated ones: drift, slow reads, a clock that is set. Nothing here waits. */
#include "../../cupti-shim/clock.c"
#include "test.h"

#define SECOND 1000000000ULL

static struct {
	double host; /* ns */
	double ppm; /* that the device runs fast */
	double offset;
	uint64_t jitter; /* each read takes up to as long, before and after */
	uint32_t random;
	bool fails;
} world;

static void begin(double ppm, uint64_t jitter)
{
	memset(&world, 0, sizeof(world));
	world.host = 5e12;
	world.ppm = ppm;
	world.offset = 123456789012.0;
	world.jitter = jitter;
	world.random = 1;
}

static uint64_t device_at(double host)
{
	return host + (host - 5e12) * world.ppm / 1e6 + world.offset;
}

static void pass(void)
{
	world.random = world.random * 1664525 + 1013904223;
	world.host += 40 + (double)(world.random >> 8 & 0xffff) / 65536 * world.jitter;
}

static uint64_t read_host(void *arg)
{
	world.host += 20;
	return world.host;
}

static uint64_t read_device(void *arg)
{
	uint64_t t;

	pass();
	t = device_at(world.host);
	pass();
	return world.fails ? 0 : t;
}

static const struct clock_source source = { read_host, read_device, NULL };

/* The largest error of what is converted right after each sample, for times since the one before. */
static uint64_t worst(struct clock *c, int seconds, uint64_t *said)
{
	uint64_t wrong = 0;

	*said = 0;
	for (int i = 0; i < seconds * 10; i++) {
		double from = world.host;

		world.host += SECOND / 10;
		if (!clock__sample(c, &source))
			return ~0ULL;
		if (clock__last(c)->error > *said)
			*said = clock__last(c)->error;
		for (int k = 0; k < 20; k++) {
			double at = from + (world.host - from) * k / 20;
			int64_t off = clock__host(c, device_at(at)) - (uint64_t)at;

			if ((uint64_t)llabs(off) > wrong)
				wrong = llabs(off);
		}
	}
	return wrong;
}

static void drifts(double ppm, uint64_t jitter, uint64_t limit)
{
	struct clock c = { .n = 0 };
	uint64_t said, wrong;

	begin(ppm, jitter);
	REQUIRE(clock__sample(&c, &source));
	wrong = worst(&c, 600, &said);
	printf("# %g ppm, reads of up to %lu ns: wrong by %llu ns, says %llu\n", ppm, (unsigned long)jitter,
	       (unsigned long long)wrong, (unsigned long long)said);
	CHECK(wrong < limit);
	/* what it says is a bound; a nanosecond or two are rounded away */
	CHECK(wrong <= said + 3);
}

TEST(ten_minutes_of_drift)
{
	drifts(100, 0, 2000);
	drifts(-100, 0, 2000);
	drifts(100, 1000, 2000);
}

TEST(ten_minutes_of_slow_reads)
{
	drifts(0, 20000, 2000);
	drifts(100, 20000, 2000);
	drifts(-100, 20000, 2000);
	/* no read is ever quick: the error is larger, and said */
	drifts(-100, 50000, 10000);
}

TEST(says_how_fast_the_device_runs)
{
	struct clock c = { .n = 0 };
	uint64_t said;

	begin(100, 500);
	clock__sample(&c, &source);
	worst(&c, 30, &said);
	CHECK(llabs(clock__last(&c)->drift - 100000) < 2000);
	CHECK(!clock__last(&c)->restarted);
}

TEST(times_before_the_first_sample_and_after_the_last)
{
	struct clock c = { .n = 0 };
	uint64_t said;
	double first;

	begin(100, 500);
	first = world.host;
	world.host += 5 * SECOND;
	clock__sample(&c, &source);
	worst(&c, 10, &said);
	CHECK(llabs((int64_t)(clock__host(&c, device_at(first)) - (uint64_t)first)) < 2000);
	CHECK(llabs((int64_t)(clock__host(&c, device_at(world.host + SECOND)) - (uint64_t)(world.host + SECOND))) <
	      2000);
}

TEST(a_device_clock_that_is_set)
{
	struct clock c = { .n = 0 };
	uint64_t said;

	begin(50, 500);
	clock__sample(&c, &source);
	worst(&c, 20, &said);
	world.offset += 3600.0 * SECOND;
	world.host += SECOND;
	clock__sample(&c, &source);
	CHECK(clock__last(&c)->restarted);
	CHECK(llabs((int64_t)(clock__host(&c, device_at(world.host)) - (uint64_t)world.host)) < 2000);
	world.host += SECOND;
	clock__sample(&c, &source);
	CHECK(!clock__last(&c)->restarted);
}

TEST(a_clock_that_can_not_be_read)
{
	struct clock c = { .n = 0 };

	begin(0, 0);
	world.fails = true;
	CHECK(!clock__sample(&c, &source));
	CHECK(clock__host(&c, 12345) == 0);
}

TEST_MAIN()
