// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One function per kind of CUPTI record; core/shim.h describes the fields, cupti.h their sources. */
#include "shim.h"

#include <string.h>

/* Declares c: the record as the type of its kind. */
#define AS(type, a) const struct type *c = (const struct type *)(a)

#define WORK_FIELDS(c)                                                                                        \
	.graph_node = (c)->graph_node, .device = (c)->device, .context = (c)->context, .stream = (c)->stream, \
	.correlation = (c)->correlation, .graph = (c)->graph, .channel = (c)->channel,                        \
	.channel_type = (c)->channel_type

#define COPY_FIELDS(c)                                                                              \
	WORK_FIELDS(c), .bytes = (c)->bytes, .kind = (c)->copy_kind, .from_memory = (c)->from_kind, \
			.to_memory = (c)->to_kind, .asynchronous = (c)->flags & 1

/* Converts the device times of a span. Work that has not ended has end 0. */
static void *span(struct records *r, enum shim_kind kind, size_t body, uint64_t start, uint64_t end)
{
	uint64_t from = clock__host(r->clock, start);

	return out__record(kind, body, from, end ? clock__host(r->clock, end) : 0, 0);
}

static void kernel(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_kernel, a);
	uint64_t name = names__id(c->name); /* first, because a name is sent before its use */
	struct shim_kernel *k = span(r, SHIM_KERNEL, sizeof(*k), c->start, c->end);

	*k = (struct shim_kernel){
		WORK_FIELDS(c),
		.name = name,
		.grid_x = c->grid[0],
		.grid_y = c->grid[1],
		.grid_z = c->grid[2],
		.block_x = c->block[0],
		.block_y = c->block[1],
		.block_z = c->block[2],
		.cluster_x = c->cluster[0],
		.cluster_y = c->cluster[1],
		.cluster_z = c->cluster[2],
		.registers = c->registers,
		.static_shared = c->static_shared,
		.dynamic_shared = c->dynamic_shared,
		.local_memory = c->local_per_thread,
		.priority = r->cupti->version >= CUPTI_IN_13_1 ? c->priority : 0,
		.launch_type = c->launch_type,
		.device_launched = r->cupti->version >= CUPTI_IN_13_0 ? c->device_launched : 0,
	};
}

static void copy(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_memcpy, a);
	struct shim_memcpy *m = span(r, SHIM_MEMCPY, sizeof(*m), c->start, c->end);

	*m = (struct shim_memcpy){
		COPY_FIELDS(c),
		.copies = r->cupti->version >= CUPTI_IN_12_8 ? c->copies : 0,
		.from_device = c->device,
		.to_device = c->device,
	};
}

static void copy_peer(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_memcpy_peer, a);
	struct shim_memcpy *m = span(r, SHIM_MEMCPY, sizeof(*m), c->start, c->end);

	*m = (struct shim_memcpy){
		COPY_FIELDS(c),
		.from_device = c->from_device,
		.to_device = c->to_device,
		.peer = 1,
	};
}

static void set(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_memset, a);
	struct shim_memset *m = span(r, SHIM_MEMSET, sizeof(*m), c->start, c->end);

	*m = (struct shim_memset){
		WORK_FIELDS(c),
		.bytes = c->bytes,
		.value = c->value,
		.memory = c->memory_kind,
		.asynchronous = c->flags & 1,
	};
}

static void synchronization(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_sync, a);
	struct shim_sync *s = span(r, SHIM_SYNCHRONIZATION, sizeof(*s), c->start, c->end);
	bool is_new = r->cupti->version >= CUPTI_IN_12_8;

	*s = (struct shim_sync){
		.event_sync = is_new ? c->event_sync : 0,
		.context = c->context,
		.stream = c->stream,
		.correlation = c->correlation,
		.cuda_event = c->event,
		.kind = c->type,
		.result = is_new ? c->result : 0,
	};
}

static void graph(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_graph, a);
	struct shim_graph *g = span(r, SHIM_GRAPH, sizeof(*g), c->start, c->end);
	bool is_new = r->cupti->version >= CUPTI_IN_12_0;

	*g = (struct shim_graph){
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.correlation = c->correlation,
		.graph = c->graph,
		.end_device = is_new ? c->end_device : c->device,
		.end_context = is_new ? c->end_context : c->context,
	};
}

static void memory(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_memory, a);
	struct shim_allocation *m = span(r, SHIM_ALLOCATION, sizeof(*m), 0, c->timestamp);

	*m = (struct shim_allocation){
		.address = c->address,
		.bytes = c->bytes,
		.pool = c->pool_address,
		.pool_size = c->pool_size,
		.pool_used = c->pool_used,
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.correlation = c->correlation,
		.operation = c->operation,
		.memory = c->memory_kind,
		.asynchronous = c->asynchronous,
	};
}

static void pool(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_pool, a);
	struct shim_pool *p = span(r, SHIM_POOL, sizeof(*p), 0, c->timestamp);

	*p = (struct shim_pool){
		.address = c->address,
		.pool_size = c->size,
		.pool_used = r->cupti->version >= CUPTI_IN_12_0 ? c->used : 0,
		.threshold = c->threshold,
		.kept = c->kept,
		.device = c->device,
		.correlation = c->correlation,
		.operation = c->operation,
		.pool_kind = c->type,
	};
}

static void call(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_api, a);
	struct shim_call *k = out__record(SHIM_CALL, sizeof(*k), clock__host(r->clock, c->start),
					  clock__host(r->clock, c->end), r->no_threads ? 0 : c->thread);

	*k = (struct shim_call){
		.function = c->function,
		.correlation = c->correlation,
		.result = c->result,
		.runtime = c->kind == KIND_RUNTIME,
	};
}

static void report(struct records *r, enum shim_kind kind, const void *body, size_t size, uint64_t key)
{
	memcpy(out__record(kind, size, 0, r->now, 0), body, size);
	names__keep(kind, body, size, key);
}

static void device(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_device, a);
	struct shim_device d = {
		.memory = c->memory,
		.bandwidth = c->bandwidth,
		.device = c->id,
		.major = c->major,
		.minor = c->minor,
		.multiprocessors = c->multiprocessors,
		.clock_khz = c->clock_khz,
		.l2_cache = c->l2_cache,
		.warp_size = c->warp_size,
		.warps_per_sm = c->warps_per_sm,
		.blocks_per_sm = c->blocks_per_sm,
		.threads_per_block = c->threads_per_block,
		.registers_per_sm = c->registers_per_sm,
		.shared_per_sm = c->shared_per_sm,
		.shared_per_block = c->shared_per_block,
		.copy_engines = c->copy_engines,
		.mig = c->mig,
	};

	memcpy(&d.uuid_first, c->uuid, 8);
	memcpy(&d.uuid_last, c->uuid + 8, 8);
	if (c->name)
		strncpy(d.model, c->name, sizeof(d.model) - 1);
	report(r, SHIM_DEVICE, &d, sizeof(d), c->id);
}

static void context(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_context, a);
	struct shim_context x = {
		.context = c->context,
		.device = c->device,
		.null_stream = c->null_stream,
		.api = c->api,
	};

	report(r, SHIM_CONTEXT, &x, sizeof(x), c->context);
}

static void stream(struct records *r, const struct cupti_activity *a)
{
	AS(cupti_stream, a);
	struct shim_stream s = {
		.context = c->context,
		.stream = c->stream,
		.priority = c->priority,
		.stream_kind = c->flag,
		.correlation = c->correlation,
	};

	report(r, SHIM_STREAM, &s, sizeof(s), (uint64_t)c->context << 32 | c->stream);
}

static void (*const converters[])(struct records *r, const struct cupti_activity *a) = {
	[KIND_MEMCPY] = copy,
	[KIND_MEMSET] = set,
	[KIND_KERNEL] = kernel,
	[KIND_DRIVER] = call,
	[KIND_RUNTIME] = call,
	[KIND_DEVICE] = device,
	[KIND_CONTEXT] = context,
	[KIND_CONCURRENT_KERNEL] = kernel,
	[KIND_MEMCPY2] = copy_peer,
	[KIND_STREAM] = stream,
	[KIND_SYNCHRONIZATION] = synchronization,
	[KIND_MEMORY2] = memory,
	[KIND_MEMORY_POOL] = pool,
	[KIND_GRAPH_TRACE] = graph,
};

int records__next(const struct cupti *c, uint8_t *buffer, size_t valid, struct cupti_activity **a, size_t *bytes)
{
	uint8_t *before = (uint8_t *)*a, *at;
	uint32_t result = c->next_record(buffer, valid, a);

	at = (uint8_t *)*a;
	if (result == CUPTI_MAX_LIMIT_REACHED)
		return 0;
	/* CUPTI follows the contents of the buffer: each record must be inside of it, and after the last one */
	if (!result && at >= buffer && at > before && at + sizeof(**a) <= buffer + valid)
		return 1;
	*bytes = before ? (size_t)(buffer + valid - before) : valid;
	return -1;
}

void records__convert(struct records *r, uint8_t *buffer, size_t valid)
{
	struct cupti_activity *a = NULL;
	size_t lost;
	int ret;

	while ((ret = records__next(r->cupti, buffer, valid, &a, &lost)) > 0) {
		if (a->kind < sizeof(converters) / sizeof(converters[0]) && converters[a->kind])
			converters[a->kind](r, a);
		else
			r->n_invalid++;
	}
	if (ret < 0)
		r->invalid_bytes += lost;
}
