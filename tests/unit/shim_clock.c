// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shim's clock with simulated clocks: drift, slow reads, a clock that is set. No test sleeps. */
#include "../../cupti-shim/clock.c"
#include "../../cupti-shim/clock_bounds.c"
#include "test.h"

#define SECOND 1000000000ULL

static struct {
	double host; /* ns */
	double ppm; /* by which the device's clock is fast */
	double turned, before; /* host time from which ppm applies, and the device's offset at that time */
	double offset;
	uint64_t jitter; /* maximum duration of a read, before and after the sample */
	uint32_t random;
	bool fails;
} world;

static void begin(double ppm, uint64_t jitter)
{
	memset(&world, 0, sizeof(world));
	world.host = world.turned = 5e12;
	world.ppm = ppm;
	world.offset = 123456789012.0;
	world.jitter = jitter;
	world.random = 1;
}

static uint64_t device_at(double host)
{
	return host + world.before + (host - world.turned) * world.ppm / 1e6 + world.offset;
}

/* Changes the rate from now on. */
static void turn(double ppm)
{
	world.before += (world.host - world.turned) * world.ppm / 1e6;
	world.turned = world.host;
	world.ppm = ppm;
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

struct outcome {
	uint64_t wrong,
		said; /* the largest error, of times converted right after each sample, and the error reported by the samples */
	uint64_t beyond; /* the largest excess over a sample's error */
	double reads; /* a sample */
};

/* Checks times since the previous sample against the largest error reported so far. */
static void convert_all(struct clock *c, double from, uint64_t error, struct outcome *o)
{
	for (int k = 0; k < 20; k++) {
		double at = from + (world.host - from) * k / 20;
		uint64_t off = llabs((int64_t)(clock__host(c, device_at(at)) - (uint64_t)at));

		if (off > o->wrong)
			o->wrong = off;
		if (off > error && off - error > o->beyond)
			o->beyond = off - error;
	}
}

/* Ten samples per second; turn_ppm: the maximum change of drift per second, in either direction. */
static struct outcome watch(struct clock *c, int seconds, double turn_ppm)
{
	struct outcome o = { .wrong = 0 };
	uint64_t error = clock__last(c)->error;

	for (int i = 0; i < seconds * 10; i++) {
		double from = world.host;

		world.host += SECOND / 10;
		world.random = world.random * 1664525 + 1013904223;
		if (turn_ppm != 0)
			turn(world.ppm + turn_ppm / 10 * ((int32_t)(world.random >> 8 & 0xffff) - 32768) / 32768);
		if (!clock__sample(c, &source)) {
			o.wrong = ~0ULL;
			return o;
		}
		error = clock__last(c)->error > error ? clock__last(c)->error : error;
		o.said = clock__last(c)->error > o.said ? clock__last(c)->error : o.said;
		o.reads += (double)clock__last(c)->reads / seconds / 10;
		convert_all(c, from, error, &o);
	}
	return o;
}

static void drifts(double ppm, uint64_t jitter, double turn_ppm)
{
	struct clock c = { .n = 0 };
	struct outcome o;

	begin(ppm, jitter);
	REQUIRE(clock__sample(&c, &source));
	o = watch(&c, 600, turn_ppm);
	printf("# %g ppm +-%g a second, reads of up to %lu ns each side: wrong by %lu ns, says %lu, %.1f reads a sample\n",
	       ppm, turn_ppm, (unsigned long)jitter, (unsigned long)o.wrong, (unsigned long)o.said, o.reads);
	CHECK(o.wrong < 2000);
	CHECK(o.said < 2000);
	/* the reported error is a bound, except for rounding by a nanosecond or two */
	CHECK(o.beyond <= 3);
}

TEST(ten_minutes_of_drift)
{
	drifts(100, 0, 0);
	drifts(-100, 0, 0);
	drifts(100, 1000, 0);
}

TEST(ten_minutes_of_slow_reads)
{
	drifts(0, 20000, 0);
	drifts(100, 20000, 0);
	drifts(-100, 20000, 0);
	drifts(100, 50000, 0);
	drifts(-100, 50000, 0);
}

TEST(a_drift_that_changes)
{
	drifts(100, 0, 0.1);
	drifts(100, 1000, 0.1);
	drifts(-100, 50000, 0.1);
}

/* With any seed of the random numbers */
TEST(many_beginnings)
{
	uint64_t wrong = 0, beyond = 0;

	for (uint32_t seed = 2; seed < 100; seed++) {
		struct clock c = { .n = 0 };
		struct outcome o;

		begin(seed & 1 ? 100 : -100, 50000);
		world.random = seed * 2654435761u;
		REQUIRE(clock__sample(&c, &source));
		o = watch(&c, 20, 0);
		wrong = o.wrong > wrong ? o.wrong : wrong;
		beyond = o.beyond > beyond ? o.beyond : beyond;
	}
	printf("# wrong by %lu ns at most\n", (unsigned long)wrong);
	CHECK(wrong < 2000);
	CHECK(beyond <= 3);
}

/* As if the host's clock is slewed: detected at once if reads are fast, and never off by more than a slow read hides */
TEST(a_rate_that_turns_at_once)
{
	for (int i = 0; i < 20; i++) {
		struct clock c = { .n = 0 };
		struct outcome o;

		begin(0, i & 1 ? 1000 : 20000);
		world.random = i + 1;
		REQUIRE(clock__sample(&c, &source));
		watch(&c, 10, 0);
		turn(i & 2 ? 20 : -5);
		o = watch(&c, 10, 0);
		CHECK(o.wrong < 4000);
		CHECK(llabs(clock__last(&c)->drift - (i & 2 ? 20000 : -5000)) < 2000);
	}
}

TEST(estimates_the_devices_rate)
{
	struct clock c = { .n = 0 };

	begin(100, 500);
	clock__sample(&c, &source);
	watch(&c, 30, 0);
	CHECK(llabs(clock__last(&c)->drift - 100000) < 2000);
	CHECK(!clock__last(&c)->restarted);
}

TEST(times_before_the_first_sample_and_after_the_last)
{
	struct clock c = { .n = 0 };
	double first;

	begin(100, 500);
	first = world.host;
	world.host += 5 * SECOND;
	clock__sample(&c, &source);
	watch(&c, 10, 0);
	CHECK(llabs((int64_t)(clock__host(&c, device_at(first)) - (uint64_t)first)) < 2000);
	CHECK(llabs((int64_t)(clock__host(&c, device_at(world.host + SECOND)) - (uint64_t)(world.host + SECOND))) <
	      2000);
}

TEST(a_device_clock_that_is_set)
{
	struct clock c = { .n = 0 };

	begin(50, 500);
	clock__sample(&c, &source);
	watch(&c, 20, 0);
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
