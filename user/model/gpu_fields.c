// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Turns rows into items of the queues. Every field may be missing, and values are untrusted. */
#include "model/gpu_private.h"

#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum row_kind { ROW_NONE, ROW_CALL, ROW_DRIVER, ROW_KERNEL, ROW_COPY, ROW_SET, ROW_GRAPH, ROW_MEMORY, ROW_DROPPED };

/* The fields of all kinds together; NULL where the kind does not have the field. */
#define FIELDS(X)         \
	X(stack)          \
	X(gil)            \
	X(stream)         \
	X(function)       \
	X(runtime)        \
	X(bytes)          \
	X(address)        \
	X(kind)           \
	X(memory)         \
	X(shared_memory)  \
	X(correlation)    \
	X(result)         \
	X(name)           \
	X(graph)          \
	X(graph_node)     \
	X(device)         \
	X(context)        \
	X(registers)      \
	X(static_shared)  \
	X(dynamic_shared) \
	X(local_memory)   \
	X(launch_type)    \
	X(value)          \
	X(from_memory)    \
	X(to_memory)      \
	X(asynchronous)   \
	X(pool)           \
	X(pool_size)      \
	X(pool_used)      \
	X(operation)      \
	X(records)        \
	X(grid_x)         \
	X(grid_y)         \
	X(grid_z)         \
	X(block_x)        \
	X(block_y)        \
	X(block_z)

#define DECLARE(name) const struct schema_field *name;
struct gpu_fields {
	const struct schema_event *event;
	enum row_kind row;
	enum gpu_request request;
	bool peer; /* copies between devices */
	struct common_fields common;
	FIELDS(DECLARE)
};

static const struct {
	const char *name;
	enum gpu_request request;
} requests[] = {
	{ "launch", REQUEST_KERNEL },	   { "copy", REQUEST_COPY },	    { "copy_peer", REQUEST_COPY },
	{ "copy_batch", REQUEST_COPY },	   { "set", REQUEST_SET },	    { "free", REQUEST_RELEASE },
	{ "graph_launch", REQUEST_GRAPH }, { "alloc", REQUEST_ALLOCATION },
};

static const struct {
	const char *name;
	enum row_kind row;
} rows_of[] = {
	{ "gpu_call", ROW_DRIVER },	{ "gpu_kernel", ROW_KERNEL }, { "gpu_memcpy", ROW_COPY },
	{ "gpu_memset", ROW_SET },	{ "gpu_graph", ROW_GRAPH },   { "gpu_memory", ROW_MEMORY },
	{ "gpu_dropped", ROW_DROPPED },
};

static const char *call_name(const struct schema_event *e)
{
	if (!e->is_call)
		return NULL;
	return !strncmp(e->name, "cuda_", 5) ? e->name + 5 : !strncmp(e->name, "cudadrv_", 8) ? e->name + 8 : NULL;
}

static void classify(struct gpu_fields *f)
{
	const char *call = call_name(f->event);
	size_t i;

	if (call) {
		f->row = ROW_CALL;
		f->peer = !strcmp(call, "copy_peer");
		for (i = 0; i < ARRAY_LEN(requests); i++)
			if (!strcmp(call, requests[i].name))
				f->request = requests[i].request;
	}
	for (i = 0; i < ARRAY_LEN(rows_of); i++)
		if (!strcmp(f->event->name, rows_of[i].name))
			f->row = rows_of[i].row;
}

#define FIND(n) f->n = schema_event__field(f->event, #n);

int gpu_fields__new(struct gpu_model *m)
{
	struct gpu_fields *f;
	u32 i;

	m->fields = calloc(m->schema->n_events + 1, sizeof(*m->fields));
	if (!m->fields)
		return -ENOMEM;
	for (i = 0; i < m->schema->n_events; i++) {
		f = &m->fields[i];
		f->event = &m->schema->events[i];
		classify(f);
		if (!f->row)
			continue;
		f->common = common_fields__of(f->event);
		FIELDS(FIND)
	}
	return 0;
}

const struct schema_event **gpu_fields__kinds(const struct gpu_model *m)
{
	const struct schema_event **kinds = calloc(m->schema->n_events + 1, sizeof(*kinds));
	u32 i, n = 0;

	for (i = 0; kinds && i < m->schema->n_events; i++)
		if (m->fields[i].row)
			kinds[n++] = m->fields[i].event;
	return kinds;
}

#define GET(field)   ((u64)view__s64(v, f->field))
#define GET32(field) ((u32)view__s64(v, f->field))

struct times {
	u64 start, end;
	u32 flags;
};

static struct times times_of(const struct gpu_fields *f, const struct view *v)
{
	struct times t = { .end = GET(common.time), .flags = GET32(common.flags) };

	t.start = f->common.start ? GET(common.start) : t.end;
	if (t.start > t.end)
		t.start = t.end;
	return t;
}

static int take_call(struct gpu_model *m, const struct gpu_fields *f, const struct view *v)
{
	struct gpu_host_item *c = gpu_queue__add(&m->calls);
	struct times t = times_of(f, v);

	if (!c)
		return -ENOMEM;
	*c = (struct gpu_host_item){
		.end = t.end,
		.pid = GET32(common.pid),
		.tid = GET32(common.tid),
		.kind = f->kind ? GET32(kind) : GET32(memory),
		.device = f->device && view__s64(v, f->device) >= 0 ? GET32(device) : GPU_NO_DEVICE,
		.open = t.flags & EVENT_OPEN,
		.untimed = t.flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION),
		.bytes = GET(bytes),
		.span = {
			.start = t.start,
			.end = t.end,
			/* an int or enum: the register's upper half is not part of it */
			.ret = (s32)view__s64(v, f->common.ret),
			.stream = GET(stream),
			.stack = GET32(stack),
			.event = f->event->id,
			.probe = (u16)GET(common.probe),
			.gil = (u8)GET(gil),
			.request = (u8)f->request,
			.no_duration = t.flags & EVENT_NO_DURATION,
			.object = f->request == REQUEST_KERNEL ? GET(function) : GET(address),
		},
	};
	if (f->peer)
		c->kind = ~0u;
	if (f->request == REQUEST_KERNEL) {
		c->shared = GET32(shared_memory);
		c->grid[0] = GET32(grid_x);
		c->grid[1] = GET32(grid_y);
		c->grid[2] = GET32(grid_z);
		c->block[0] = GET32(block_x);
		c->block[1] = GET32(block_y);
		c->block[2] = GET32(block_z);
	}
	return 0;
}

static int take_driver(struct gpu_model *m, const struct gpu_fields *f, const struct view *v)
{
	struct gpu_driver_item *d = gpu_queue__add(&m->driver);
	struct times t = times_of(f, v);

	if (!d)
		return -ENOMEM;
	*d = (struct gpu_driver_item){
		.end = t.end,
		.start = t.start,
		.pid = GET32(common.pid),
		.tid = GET32(common.tid),
		.correlation = GET32(correlation),
		.function = GET32(function) | (GET32(runtime) ? GPU_CALL_RUNTIME : 0),
		.result = (s32)view__s64(v, f->result),
	};
	return 0;
}

static void fill_kernel(struct gpu_model *m, const struct gpu_fields *f, const struct view *v, struct gpu_work *w)
{
	w->name = gpu_facts__kernel(m, w->pid, GET(name));
	w->grid[0] = GET32(grid_x);
	w->grid[1] = GET32(grid_y);
	w->grid[2] = GET32(grid_z);
	w->block[0] = GET32(block_x);
	w->block[1] = GET32(block_y);
	w->block[2] = GET32(block_z);
	w->registers = GET32(registers);
	w->static_shared = GET32(static_shared);
	w->dynamic_shared = GET32(dynamic_shared);
	w->local_memory = GET32(local_memory);
	w->cooperative = GET(launch_type) != 0;
}

static int take_work(struct gpu_model *m, const struct gpu_fields *f, const struct view *v, enum gpu_kind kind)
{
	struct gpu_work_item *i = gpu_queue__add(&m->work);
	struct times t = times_of(f, v);
	struct gpu_work *w;

	if (!i)
		return -ENOMEM;
	i->end = t.end;
	w = &i->work;
	*w = (struct gpu_work){
		.kind = kind,
		.open = t.flags & EVENT_OPEN,
		.pid = GET32(common.pid),
		.device = GET32(device),
		.context = GET32(context),
		.stream = GET32(stream),
		.correlation = GET32(correlation),
		.graph = GET32(graph),
		.graph_node = GET(graph_node),
		.start = t.start,
		.end = t.end,
		.bytes = GET(bytes),
		.asynchronous = GET(asynchronous) != 0,
	};
	if (kind == GPU_KERNEL)
		fill_kernel(m, f, v, w);
	if (kind == GPU_COPY) {
		w->copy_kind = GET32(kind);
		w->from_memory = GET32(from_memory);
		w->to_memory = GET32(to_memory);
	}
	if (kind == GPU_SET) {
		w->to_memory = GET32(memory);
		w->value = GET32(value);
	}
	return 0;
}

static int take_memory(struct gpu_model *m, const struct gpu_fields *f, const struct view *v)
{
	u32 operation = GET32(operation);
	struct gpu_memory_item *i;

	if (operation != GPU_MEMORY_ALLOCATE && operation != GPU_MEMORY_RELEASE)
		return 0;
	i = gpu_queue__add(&m->memory);
	if (!i)
		return -ENOMEM;
	i->time = GET(common.time);
	i->a = (struct gpu_allocation){
		.pid = GET32(common.pid),
		.time = i->time,
		.address = GET(address),
		.bytes = GET(bytes),
		.device = GET32(device),
		.memory = GET32(memory),
		.release = operation == GPU_MEMORY_RELEASE,
		.asynchronous = GET(asynchronous) != 0,
		.pool = GET(pool),
		.pool_size = GET(pool_size),
		.pool_used = GET(pool_used),
	};
	return 0;
}

static int take_dropped(struct gpu_model *m, const struct gpu_fields *f, const struct view *v)
{
	u64 time = GET(common.time);

	if (gpu_model__is_selected(m, time, time)) {
		m->coverage.dropped += GET(records);
		m->coverage.dropped_bytes += GET(bytes);
	}
	return 0;
}

static int take_event(struct gpu_model *m, const struct gpu_fields *f, const struct view *v)
{
	switch (f->row) {
	case ROW_CALL:
		return take_call(m, f, v);
	case ROW_DRIVER:
		return take_driver(m, f, v);
	case ROW_KERNEL:
		return take_work(m, f, v, GPU_KERNEL);
	case ROW_COPY:
		return take_work(m, f, v, GPU_COPY);
	case ROW_SET:
		return take_work(m, f, v, GPU_SET);
	case ROW_GRAPH:
		return take_work(m, f, v, GPU_GRAPH);
	case ROW_MEMORY:
		return take_memory(m, f, v);
	case ROW_DROPPED:
		return take_dropped(m, f, v);
	default:
		return 0;
	}
}

int gpu_fields__take(struct gpu_model *m, const struct rows *rows)
{
	const struct gpu_fields *f = &m->fields[rows__event(rows) - m->schema->events];
	u64 time;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		err = take_event(m, f, &v);
		time = (u64)view__s64(&v, f->common.time);
		m->newest = time > m->newest ? time : m->newest;
	}
	return err;
}
