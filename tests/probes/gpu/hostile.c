// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile target, which passes records to the probe site that no shim would:
 * hostile SHIM, after a line on stdin. Prints the numbers of good and bad records.
 */
#include "core/shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void (*hand_over)(const void *batch, uint64_t bytes);
static char *page; /* the next page is not mapped */
static unsigned int good, bad;

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

struct one {
	struct shim_batch head;
	struct shim_record record;
	struct shim_memset body;
};

static struct one fresh(void)
{
	struct one o = {
		.head = { SHIM_MAGIC, SHIM_VERSION, 1, sizeof(o), 0, 1 },
		.record = { sizeof(o.record) + sizeof(o.body), SHIM_MEMSET, 0, now() - 1000, now() },
		.body = { .bytes = 4711 },
	};

	return o;
}

static void send(struct one o, int is_good)
{
	hand_over(&o, sizeof(o));
	good += is_good;
	bad += !is_good;
}

#define GOOD(...)                       \
	do {                            \
		struct one o = fresh(); \
		__VA_ARGS__;            \
		send(o, 1);             \
	} while (0)
#define BAD(...)                        \
	do {                            \
		struct one o = fresh(); \
		__VA_ARGS__;            \
		send(o, 0);             \
	} while (0)

static void nonsense(void)
{
	GOOD();
	BAD(o.head.magic = 1);
	BAD(o.head.bytes = 0xffffffff);
	BAD(o.head.bytes = 3);
	BAD(o.head.bytes = sizeof(o.head));
	BAD(o.head.records = 0xffff);
	BAD(o.record.size = 0);
	BAD(o.record.size = 0xffff);
	BAD(o.record.size = 25);
	BAD(o.record.size = sizeof(o.record) + sizeof(o.body) + 8);
	BAD(o.record.kind = 0);
	BAD(o.record.kind = SHIM_KINDS);
	BAD(o.record.kind = 0xffff);
	/* kinds whose low 5 or 8 bits are those of a known kind */
	BAD(o.record.kind = 32 + SHIM_MEMSET);
	BAD(o.record.kind = 256 + SHIM_MEMSET);
	/* before the start of the process, in the future, with the end before the start */
	BAD(o.record.start = 1);
	BAD(o.record.end = ~0ULL);
	BAD(o.record.end = now() + 60000000000ULL);
	BAD(o.record.start = now() - 10, o.record.end = now() - 20000);
	GOOD(o.record.start = 0);
	GOOD(o.record.end = 0);
	/* an older shim's body is shorter; a newer shim's has unknown fields at its end */
	GOOD(o.record.size = sizeof(o.record) + 8);
	GOOD(o.record.size = sizeof(o.record));
	GOOD(o.head.version = 77);
}

static void at_the_edge(void)
{
	struct one o = fresh();

	hand_over(NULL, 0);
	hand_over((void *)0xffffffff80000000, 100);
	hand_over(page + 4096 - 8, 100);
	/* the record reaches beyond the page's end */
	memcpy(page + 4096 - 60, &o, 60);
	hand_over(page + 4096 - 60, sizeof(o));
	bad += 4;
	memcpy(page + 4096 - sizeof(o), &o, sizeof(o));
	hand_over(page + 4096 - sizeof(o), sizeof(o));
	good++;
}

/* A batch of three records that claims to have five; the first and the third are rejected. */
static void many_bad(void)
{
	struct {
		struct shim_batch head;
		struct {
			struct shim_record record;
			struct shim_memset body;
		} list[3];
	} b;
	struct one o = fresh();

	b.head = o.head;
	b.head.bytes = sizeof(b);
	b.head.records = 5;
	for (int i = 0; i < 3; i++) {
		b.list[i].record = o.record;
		b.list[i].body = o.body;
	}
	b.list[0].record.kind = b.list[2].record.kind = 0;
	hand_over(&b, sizeof(b));
	good++;
	bad += 4;
}

static u32 next(void)
{
	static u32 x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	return x ^= x << 5;
}

/* Random records, which must not break anything. */
static void noise(void)
{
	static u8 bytes[SHIM_BATCH_MAX] __attribute__((aligned(8)));

	for (int i = 0; i < 2000; i++) {
		struct shim_batch *h = (struct shim_batch *)bytes;

		for (size_t k = 0; k < sizeof(bytes); k += 4)
			*(u32 *)(bytes + k) = i & 1 ? next() : next() & 0x00ff00ff;
		*h = (struct shim_batch){ SHIM_MAGIC, 1, next() & 255, next() & 0x7fff, 0, i };
		hand_over(bytes, next());
	}
}

int main(int argc, char **argv)
{
	void *shim = dlopen(argv[1], RTLD_NOW);

	*(void **)&hand_over = shim ? dlsym(shim, "sonde_cupti_records") : NULL;
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!hand_over || page == MAP_FAILED || munmap(page + 4096, 4096))
		return 1;
	getchar();
	nonsense();
	at_the_edge();
	many_bad();
	printf("%u %u\n", good, bad);
	if (argc > 2)
		noise();
	return 0;
}
