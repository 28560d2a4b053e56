// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Collects records in a batch, and hands the batch over at the probe site. Runs under the shim's lock. */
#include "shim.h"

#include <string.h>
#include <time.h>

#define PACE_BATCHES 8 /* per millisecond */

/* As many bytes as one run of the BPF program reads. */
static uint8_t batch[SHIM_BATCH_MAX] __attribute__((aligned(64)));
static uint64_t number, handed_over;

/*
 * The probe site. A tracer's probe reads the batch; a program that reads it in this process, where there is no eBPF
 * (gVisor), sets sonde_cupti_consumer.
 */
SHIM_EXPORT void (*volatile sonde_cupti_consumer)(const void *batch, uint64_t bytes);
SHIM_EXPORT void sonde_cupti_records(const void *batch, uint64_t bytes);

/* It begins with an instruction that the kernel emulates. */
__asm__(".text\n"
	".globl sonde_cupti_records\n"
	".type sonde_cupti_records, @function\n"
	".p2align 4\n"
	"sonde_cupti_records:\n"
	"	nop\n"
	"	ret\n"
	".size sonde_cupti_records, . - sonde_cupti_records\n");

static struct shim_batch *head(void)
{
	return (struct shim_batch *)batch;
}

void out__flush(void)
{
	void (*consumer)(const void *batch, uint64_t bytes) = sonde_cupti_consumer;
	struct shim_batch *h = head();

	if (!h->records)
		return;
	h->magic = SHIM_MAGIC;
	h->version = SHIM_VERSION;
	h->number = ++number;
	sonde_cupti_records(batch, h->bytes);
	if (consumer)
		consumer(batch, h->bytes);
	handed_over += h->records;
	/* limits the rate to a million records per second, so that the reader of the rings can keep up */
	if (number % PACE_BATCHES == 0)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	memset(h, 0, sizeof(*h));
}

void *out__record(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, uint32_t tid)
{
	struct shim_batch *h = head();
	size_t size = (sizeof(struct shim_record) + body + 7) & ~7ULL;
	struct shim_record *r;

	if (size > SHIM_RECORD_MAX)
		return NULL;
	if (h->records == SHIM_BATCH_RECORDS || h->bytes + size > SHIM_BATCH_MAX)
		out__flush();
	if (!h->bytes)
		h->bytes = sizeof(*h);
	r = (struct shim_record *)(batch + h->bytes);
	memset(r, 0, size);
	*r = (struct shim_record){ .size = size, .kind = kind, .tid = tid, .start = start, .end = end };
	h->bytes += size;
	h->records++;
	return r + 1;
}

void *out__record_text(enum shim_kind kind, size_t body, uint64_t start, uint64_t end, const char *text)
{
	size_t room = SHIM_RECORD_MAX - sizeof(struct shim_record) - body - 8, len = strnlen(text, room);
	char *at = out__record(kind, body + len + 1, start, end, 0);

	if (at)
		memcpy(at + body, text, len);
	return at;
}

uint64_t out__handed_over(void)
{
	return handed_over + head()->records;
}

/* A new tracer's numbers begin at 1; in a child of a fork the waiting records were the parent's. */
void out__reset(void)
{
	memset(batch, 0, sizeof(struct shim_batch));
	handed_over = 0;
}
