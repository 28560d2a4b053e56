// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/drain/ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Producers read tail for every record, so it is advanced rarely, to save them the cache miss. */
#define TAIL_STEPS 16
/* The most bytes that one poll of a ring reads, because the worker must also handle new mappings of libraries. */
#define READ_BYTES (256ULL << 10)

struct rings {
	struct ring_buffer *bell;
	u8 *map;
	u64 size; /* of a ring's data */
	u32 cpus;
};

bool ring__read(struct ring *r, u64 size, ring_record_fn fn, void *arg)
{
	u64 pos = r->tail, end = pos + (size < READ_BYTES ? size : READ_BYTES), step = pos + size / TAIL_STEPS;

	while (pos < end) {
		u64 *at = ring__at(r, size, pos);
		u32 bytes = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (!bytes)
			break;
		fn(arg, at + 1, bytes);
		memset(at, 0, RING_NEED(bytes));
		pos += RING_NEED(bytes);
		if (pos >= step) {
			__atomic_store_n(&r->tail, pos, __ATOMIC_RELEASE);
			step = pos + size / TAIL_STEPS;
		}
	}
	__atomic_store_n(&r->tail, pos, __ATOMIC_RELEASE);
	return pos >= end;
}

bool ring__pending(const struct ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) != r->tail;
}

static struct ring *ring_of(const struct rings *rs, u32 cpu)
{
	return (struct ring *)(rs->map + cpu * RING_BYTES(rs->size));
}

/* The ring buffer for wake-ups contains only discarded records. */
static int on_bell(void *arg, void *data, size_t size)
{
	return 0;
}

int rings__open(struct rings **out, int rings_fd, int bell_fd, u32 cpus, u64 size)
{
	struct rings *rs = calloc(1, sizeof(*rs));
	int ret;

	*out = NULL;
	if (!rs)
		return -ENOMEM;
	rs->size = size;
	rs->cpus = cpus;
	rs->map = mmap(NULL, cpus * RING_BYTES(size), PROT_READ | PROT_WRITE, MAP_SHARED, rings_fd, 0);
	if (rs->map == MAP_FAILED) {
		ret = -errno;
		free(rs);
		return ret;
	}
	rs->bell = ring_buffer__new(bell_fd, on_bell, NULL, NULL);
	if (!rs->bell) {
		ret = -errno;
		rings__close(rs);
		return ret;
	}
	*out = rs;
	return 0;
}

bool rings__read(struct rings *rs, ring_record_fn fn, void *arg)
{
	bool more = false;

	/*
	 * Consumes the wake-ups before it reads the rings: a record that is written after its ring was read then wakes
	 * the worker again.
	 */
	ring_buffer__consume(rs->bell);
	for (u32 cpu = 0; cpu < rs->cpus; cpu++)
		more |= ring__read(ring_of(rs, cpu), rs->size, fn, arg);
	return more;
}

bool rings__pending(const struct rings *rs)
{
	for (u32 cpu = 0; cpu < rs->cpus; cpu++)
		if (ring__pending(ring_of(rs, cpu)))
			return true;
	return false;
}

void rings__close(struct rings *rs)
{
	if (!rs)
		return;
	ring_buffer__free(rs->bell);
	munmap(rs->map, rs->cpus * RING_BYTES(rs->size));
	free(rs);
}

void rings__forget(struct rings *rs)
{
	if (rs)
		munmap(rs->map, rs->cpus * RING_BYTES(rs->size));
}
