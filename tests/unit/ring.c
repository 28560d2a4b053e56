// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ring with threads as producers: they race on all CPUs, while BPF programs of one
 * CPU can only interrupt each other.
 */
#include "record/drain/ring.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define SIZE	  (2 * RECORD_MAX)
#define PRODUCERS 3
#define RECORDS	  200000

struct record {
	u32 producer;
	u32 bytes;
	u64 number;
	u8 rest[];
};

static struct ring *ring;
static u64 lost[PRODUCERS], came[PRODUCERS], last[PRODUCERS], torn;

static struct ring *new_ring(void)
{
	struct ring *r = aligned_alloc(64, (RING_BYTES(SIZE) + 63) & ~63ULL);

	if (r)
		memset(r, 0, RING_BYTES(SIZE));
	return r;
}

/* Like emit() of the BPF programs. Returns false if the ring is full. */
static bool put(struct ring *r, const void *record, u32 bytes)
{
	u64 pos = ring__reserve(r, SIZE, RING_NEED(bytes));
	u64 *at;

	if (pos == RING_NONE)
		return false;
	at = ring__at(r, SIZE, pos);
	memcpy(at + 1, record, bytes);
	ring__commit(at, bytes);
	return true;
}

/* Records of all sizes, filled with a byte that is not 0, so that stale contents are no valid size. */
static void *produce(void *arg)
{
	u32 id = (uintptr_t)arg;
	u8 room[RECORD_MAX] __attribute__((aligned(8)));
	struct record *r = (struct record *)room;

	for (u64 i = 1; i <= RECORDS; i++) {
		r->producer = id;
		r->number = i;
		r->bytes = sizeof(*r) + (i * 37 + id) % 200;
		if (i % 1000 == 0)
			r->bytes = RECORD_MAX;
		memset(r->rest, 1 + i % 255, r->bytes - sizeof(*r));
		lost[id] += !put(ring, r, r->bytes);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void check(void *arg, void *record, u32 size)
{
	struct record *r = record;

	if (r->producer >= PRODUCERS || r->bytes != size || r->number <= last[r->producer]) {
		torn++;
		return;
	}
	last[r->producer] = r->number;
	came[r->producer]++;
	for (u32 i = 0; i < size - sizeof(*r); i++)
		if (r->rest[i] != 1 + r->number % 255) {
			torn++;
			return;
		}
}

TEST(each_record_is_read_completely_once_or_counted_as_lost)
{
	pthread_t threads[PRODUCERS];
	u64 sum = 0, sum_lost = 0;

	ring = new_ring();
	REQUIRE(ring);
	for (u64 i = 0; i < PRODUCERS; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, produce, (void *)i));
	for (u32 i = 0; i < PRODUCERS; i++)
		while (pthread_tryjoin_np(threads[i], NULL))
			ring__read(ring, SIZE, check, NULL);
	while (ring__pending(ring))
		ring__read(ring, SIZE, check, NULL);
	for (u32 i = 0; i < PRODUCERS; i++) {
		CHECK(came[i] + lost[i] == RECORDS);
		sum += came[i];
		sum_lost += lost[i];
	}
	CHECK(!torn);
	CHECK(sum > 0 && sum_lost > 0);
	printf("# %llu came, %llu were lost\n", sum, sum_lost);
	free(ring);
}

static void count(void *arg, void *record, u32 size)
{
	++*(u32 *)arg;
}

TEST(a_gap_delays_and_loses_nothing)
{
	struct ring *r = new_ring();
	u64 record[3] = {}, hole;
	u32 n = 0;

	REQUIRE(r);
	CHECK(put(r, record, sizeof(record)));
	hole = ring__reserve(r, SIZE, RING_NEED(sizeof(record)));
	CHECK(hole != RING_NONE);
	CHECK(put(r, record, sizeof(record)));
	ring__read(r, SIZE, count, &n);
	CHECK(n == 1);
	CHECK(ring__pending(r));
	ring__commit(ring__at(r, SIZE, hole), sizeof(record));
	ring__read(r, SIZE, count, &n);
	CHECK(n == 3);
	CHECK(!ring__pending(r));
	free(r);
}

TEST(it_fills_to_the_last_byte_and_is_empty_after_a_read)
{
	u8 record[RECORD_MAX - 8] = {};
	struct ring *r = new_ring();
	u32 n = 0;

	REQUIRE(r);
	/* large positions, and positions just before a multiple of the size */
	r->head = r->tail = (7ULL << 40) + SIZE - 8;
	for (u32 lap = 1; lap <= 3; lap++) {
		CHECK(put(r, record, sizeof(record)));
		CHECK(put(r, record, sizeof(record)));
		CHECK(!put(r, record, 8));
		ring__read(r, SIZE, count, &n);
		CHECK(n == 2 * lap);
		CHECK(!ring__pending(r));
	}
	for (u64 i = 0; i < RING_BYTES(SIZE) - sizeof(*r); i++)
		if (!CHECK(r->data[i] == 0))
			break;
	free(r);
}

TEST_MAIN()
