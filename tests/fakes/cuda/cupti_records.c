// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records as NVIDIA's headers lay them out. */
#include "cupti_double.h"

#include <string.h>

/* Handed out for as long as the process runs, as CUPTI's are. */
static const char model[] = "Simulated GPU";

#define NEW(type, kind_)          \
	type *c = (type *)out;    \
	memset(c, 0, sizeof(*c)); \
	c->kind = kind_;          \
	_Static_assert(sizeof(*c) <= sizeof(*out), "a record is too large")
#define TIMES()                                                  \
	do {                                                     \
		c->start = finished ? cupti__time(r->start) : 0; \
		c->end = finished ? cupti__time(r->end) : 0;     \
	} while (0)
#define PLACE()                                    \
	do {                                       \
		c->deviceId = r->device;           \
		c->contextId = r->context;         \
		c->streamId = r->stream;           \
		c->correlationId = r->correlation; \
	} while (0)

static void kernel(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	TIMES();
	PLACE();
	c->completed = c->end;
	c->name = r->name;
	c->gridX = r->grid[0];
	c->gridY = r->grid[1];
	c->gridZ = r->grid[2];
	c->blockX = r->block[0];
	c->blockY = r->block[1];
	c->blockZ = r->block[2];
	c->dynamicSharedMemory = r->shared;
	c->registersPerThread = 40;
	c->graphId = r->graph;
	c->graphNodeId = r->node;
	c->clusterX = c->clusterY = c->clusterZ = 1;
#if CUPTI_API_VERSION >= 130100
	c->priority = -3;
	c->isDeviceLaunched = 0;
#endif
}

static void copy(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
	TIMES();
	PLACE();
	c->copyKind = r->kind;
	c->srcKind = r->from_memory;
	c->dstKind = r->to_memory;
	c->flags = r->asynchronous;
	c->bytes = r->bytes;
	c->copyCount = 1;
}

static void copy_peer(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivityMemcpyPtoP4, CUPTI_ACTIVITY_KIND_MEMCPY2);
	TIMES();
	PLACE();
	c->copyKind = r->kind;
	c->srcKind = r->from_memory;
	c->dstKind = r->to_memory;
	c->flags = r->asynchronous;
	c->bytes = r->bytes;
	c->srcDeviceId = r->device;
	c->dstDeviceId = r->peer - 1;
}

static void set(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
	TIMES();
	PLACE();
	c->bytes = r->bytes;
	c->value = r->kind;
	c->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	c->flags = r->asynchronous;
	c->graphId = r->graph;
	c->graphNodeId = r->node;
}

static void synchronization(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivitySynchronization2, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	TIMES();
	c->type = r->kind;
	c->contextId = r->context;
	c->streamId = r->stream;
	c->correlationId = r->correlation;
}

static void graph(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivityGraphTrace2, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	TIMES();
	PLACE();
	c->graphId = r->graph;
	c->endDeviceId = r->device;
	c->endContextId = r->context;
}

static void memory(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivityMemory4, CUPTI_ACTIVITY_KIND_MEMORY2);
	PLACE();
	c->timestamp = cupti__time(r->start);
	c->memoryOperationType = r->kind;
	c->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	c->address = r->address;
	c->bytes = r->bytes;
}

static void call(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivityAPI, r->op == FAKE_RUNTIME_CALL ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER);
	TIMES();
	c->cbid = r->kind;
	c->threadId = r->tid;
	c->correlationId = r->correlation;
	c->returnValue = r->result;
}

static void device(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
	c->id = r->device;
	c->name = model;
	c->globalMemorySize = 80ULL << 30;
	c->numMultiprocessors = 132;
	c->coreClockRate = 1980000;
	c->computeCapabilityMajor = 9;
	memset(&c->uuid, 0x11 + r->device, sizeof(c->uuid));
}

static void context(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
	c->contextId = r->context;
	c->deviceId = r->device;
	c->computeApiKind = fake__setting("FAKE_CUDA", "mps", 0) ? CUPTI_ACTIVITY_COMPUTE_API_CUDA_MPS :
								   CUPTI_ACTIVITY_COMPUTE_API_CUDA;
	c->nullStreamId = 7;
}

static void stream(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	NEW(CUpti_ActivityStream, CUPTI_ACTIVITY_KIND_STREAM);
	c->contextId = r->context;
	c->streamId = r->stream;
	c->flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
}

static const struct {
	uint32_t kind;
	size_t size;
	void (*make)(struct cupti_record *out, const struct fake_record *r, bool finished);
} makers[] = {
	[FAKE_KERNEL] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(KERNEL), kernel },
	[FAKE_COPY] = { CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(MEMCPY), copy },
	[FAKE_SET] = { CUPTI_ACTIVITY_KIND_MEMSET, sizeof(MEMSET), set },
	[FAKE_SYNC] = { CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2), synchronization },
	[FAKE_GRAPH] = { CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2), graph },
	[FAKE_MEMORY] = { CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4), memory },
	[FAKE_CALL] = { CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI), call },
	[FAKE_RUNTIME_CALL] = { CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI), call },
	[FAKE_DEVICE] = { CUPTI_ACTIVITY_KIND_DEVICE, sizeof(DEVICE), device },
	[FAKE_CONTEXT] = { CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CONTEXT), context },
	[FAKE_STREAM] = { CUPTI_ACTIVITY_KIND_STREAM, sizeof(CUpti_ActivityStream), stream },
};

static size_t padded(size_t size)
{
	return (size + 7) & ~7ULL;
}

size_t cupti__record_size(uint32_t kind)
{
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (makers[i].kind == kind)
			return padded(makers[i].size);
	return padded(sizeof(CUpti_ActivityMemcpyPtoP4));
}

size_t cupti__record(struct cupti_record *out, const struct fake_record *r, bool finished)
{
	if (r->op == FAKE_COPY && r->peer) {
		copy_peer(out, r, finished);
		return padded(sizeof(CUpti_ActivityMemcpyPtoP4));
	}
	makers[r->op].make(out, r, finished);
	return padded(makers[r->op].size);
}
