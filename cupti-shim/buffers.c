// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The buffers that CUPTI fills. It requests one during the target's calls, from any thread: so nothing is allocated
 * there except for a mapping, once, and no thread waits. If all buffers are in use, CUPTI gets one whose contents are
 * discarded: without any buffer, CUPTI before CUDA 12.9 can crash. Full buffers wait in a list for the shim's thread.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "shim.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum buffer_use { FREE, WITH_CUPTI, FULL, TAKEN };

static struct {
	pthread_mutex_t lock;
	struct buffer {
		uint8_t *data; /* NULL: not mapped */
		enum buffer_use use;
		size_t valid;
		uint64_t number; /* order of completion */
	} list[BUFFERS_MAX];
	uint64_t completed;
	uint64_t records, bytes; /* discarded: number of records, and bytes whose records could not be counted */
	buffers__count count;
	int max; /* buffers in use at once */
} buffers = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Buffers whose contents are discarded. Their records are counted, unless CUPTI had to get one of them twice at the
 * same time.
 */
static struct {
	uint8_t data[64 << 10] __attribute__((aligned(8)));
	int holders;
	bool shared;
} discards[4];

static uint8_t *get(void)
{
	struct buffer *unmapped = NULL;
	int i;

	for (i = 0; i < buffers.max; i++) {
		struct buffer *b = &buffers.list[i];

		if (b->use == FREE && b->data) {
			b->use = WITH_CUPTI;
			return b->data;
		}
		if (!b->data && !unmapped)
			unmapped = b;
	}
	if (!unmapped)
		return NULL;
	unmapped->data = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (unmapped->data == MAP_FAILED) {
		unmapped->data = NULL;
		return NULL;
	}
	unmapped->use = WITH_CUPTI;
	return unmapped->data;
}

static uint8_t *get_discard(void)
{
	int i, least = 0;

	for (i = 1; i < 4; i++)
		if (discards[i].holders < discards[least].holders)
			least = i;
	discards[least].shared = discards[least].holders++ > 0;
	return discards[least].data;
}

static void discard(int i, size_t valid)
{
	uint64_t n = discards[i].shared || !buffers.count ? 0 : buffers.count(discards[i].data, valid);

	buffers.records += n;
	if (!n)
		buffers.bytes += valid;
	if (discards[i].holders)
		discards[i].holders--;
}

void buffers__requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	pthread_mutex_lock(&buffers.lock);
	*buffer = get();
	*size = *buffer ? BUFFER_BYTES : sizeof(discards[0].data);
	*max_records = 0;
	if (!*buffer)
		*buffer = get_discard();
	pthread_mutex_unlock(&buffers.lock);
}

static struct buffer *find(const uint8_t *data)
{
	int i;

	for (i = 0; i < BUFFERS_MAX; i++)
		if (buffers.list[i].data == data)
			return &buffers.list[i];
	return NULL;
}

void buffers__completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct buffer *b;
	int i;

	pthread_mutex_lock(&buffers.lock);
	for (i = 0; i < 4; i++)
		if (buffer == discards[i].data)
			discard(i, valid);
	b = buffer ? find(buffer) : NULL;
	if (b) {
		b->use = valid ? FULL : FREE;
		b->valid = valid <= BUFFER_BYTES ? valid : BUFFER_BYTES;
		b->number = ++buffers.completed;
	}
	pthread_mutex_unlock(&buffers.lock);
}

uint8_t *buffers__take(size_t *valid)
{
	struct buffer *oldest = NULL;
	int i;

	pthread_mutex_lock(&buffers.lock);
	for (i = 0; i < BUFFERS_MAX; i++)
		if (buffers.list[i].use == FULL && (!oldest || buffers.list[i].number < oldest->number))
			oldest = &buffers.list[i];
	if (oldest) {
		oldest->use = TAKEN;
		*valid = oldest->valid;
	}
	pthread_mutex_unlock(&buffers.lock);
	return oldest ? oldest->data : NULL;
}

void buffers__give_back(uint8_t *buffer)
{
	struct buffer *b;

	pthread_mutex_lock(&buffers.lock);
	b = find(buffer);
	if (b)
		b->use = FREE;
	pthread_mutex_unlock(&buffers.lock);
}

void buffers__count_by(buffers__count count)
{
	uint64_t max = shim__setting("SONDE_CUPTI_BUFFERS", BUFFERS_MAX);

	buffers.max = max > 0 && max < BUFFERS_MAX ? max : BUFFERS_MAX;
	buffers.count = count;
}

bool buffers__discarded(uint64_t *records, uint64_t *bytes)
{
	pthread_mutex_lock(&buffers.lock);
	*records = buffers.records;
	*bytes = buffers.bytes;
	buffers.records = buffers.bytes = 0;
	pthread_mutex_unlock(&buffers.lock);
	return *records || *bytes;
}

void buffers__release(void)
{
	int i;

	pthread_mutex_lock(&buffers.lock);
	for (i = 0; i < BUFFERS_MAX; i++) {
		struct buffer *b = &buffers.list[i];

		if (b->use != FREE || !b->data)
			continue;
		munmap(b->data, BUFFER_BYTES);
		b->data = NULL;
	}
	pthread_mutex_unlock(&buffers.lock);
}

/* CUPTI may still use some buffers, but it delivers nothing in a child. */
void buffers__after_fork(void)
{
	pthread_mutex_init(&buffers.lock, NULL);
	memset(buffers.list, 0, sizeof(buffers.list));
	memset(discards, 0, sizeof(discards));
	buffers.records = buffers.bytes = 0;
}
