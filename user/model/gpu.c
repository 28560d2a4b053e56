// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the trace and decides when events are emitted. */
#include "model/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ns that are read before the selected time, for its launches, and after it, for calls that end later. */
#define BEFORE 30000000000ull
#define AFTER  3000000000ull

#define LAG  2000000000ull /* ns that events may arrive late, except those that CUPTI held back */
#define STEP 1000000000ull
/* ns that calls are emitted earlier than work, because emitting them may add work. */
#define AHEAD 100000000ull
/* ns that work waits for its driver call, and with it all work that ended later. */
#define HOLD	  15000000000ull
#define QUEUE_MAX (128u << 10) /* items: 24 MiB of work */

struct stream_key {
	u32 pid, device, context, stream;
};

#define STREAMS_MAX (64u << 10)

/* Call before emit_all_work: emitting calls may add work. */
static int emit_calls(struct gpu_model *m, u64 before)
{
	struct gpu_host_item *c;
	int err = gpu_queue__sort(&m->calls);
	u32 i;

	for (i = 0; !err && i < m->calls.n; i++) {
		c = gpu_queue__at(&m->calls, i);
		if (!c->pushed)
			err = gpu_join__push(m, c);
		c->pushed = true;
	}
	for (i = 0; !err && i < m->calls.n; i++) {
		c = gpu_queue__at(&m->calls, i);
		if (c->end >= before)
			break;
		if (gpu_model__is_selected(m, c->span.start, c->end))
			m->coverage.open_calls += c->open;
		err = gpu_host__emit(m, c);
	}
	gpu_queue__drop(&m->calls, i);
	return err;
}

static int take_driver(struct gpu_model *m, u64 before)
{
	const struct gpu_driver_item *d;
	int err = gpu_queue__sort(&m->driver);
	u32 i;

	for (i = 0; !err && i < m->driver.n; i++) {
		d = gpu_queue__at(&m->driver, i);
		if (d->end >= before)
			break;
		err = gpu_join__take_driver(m, d);
	}
	gpu_queue__drop(&m->driver, i);
	return err;
}

static void count(struct gpu_model *m, const struct gpu_work *w)
{
	struct gpu_coverage *t = &m->coverage;

	t->kernels += w->kind == GPU_KERNEL;
	t->copies += w->kind == GPU_COPY;
	t->sets += w->kind == GPU_SET;
	t->graphs += w->kind == GPU_GRAPH;
	t->joined += !!w->launch;
	t->unjoined += !w->launch;
	t->unprobed += w->launch && !w->launch->probed;
	t->host_time += w->host_time;
	t->open += w->open;
}

static int set_stream_free(struct gpu_model *m, struct gpu_work *w)
{
	struct stream_key key = { w->pid, w->device, w->context, w->stream };
	u64 *last = m->streams.n < STREAMS_MAX ? map__get(&m->streams, &key) : map__find(&m->streams, &key);

	if (!last)
		return m->streams.n < STREAMS_MAX ? -ENOMEM : 0;
	if (w->launch && *last > w->launch->end)
		w->stream_free = *last;
	*last = w->end > *last ? w->end : *last;
	return 0;
}

int gpu_model__emit_work(struct gpu_model *m, const struct gpu_work_item *i)
{
	struct gpu_work w = i->work;
	struct gpu_launch launch;
	int err = 0;

	if (gpu_join__launch(m, i, &launch))
		w.launch = &launch;
	if (!w.host_time) {
		w.queued = w.launch && w.start > launch.end ? w.start - launch.end : 0;
		err = set_stream_free(m, &w);
	}
	if (err || !gpu_model__is_selected(m, w.start, w.end))
		return err;
	count(m, &w);
	return m->listener->work ? m->listener->work(&w, m->arg) : 0;
}

/* Returns whether the work's driver call may still arrive. */
static bool may_get_call(const struct gpu_model *m, const struct gpu_work_item *i, u64 hold)
{
	const struct gpu_process *p;

	if (i->end < hold || i->work.host_time || gpu_join__has_driver(m, i->work.pid, i->work.correlation))
		return false;
	p = gpu_facts__process(m, i->work.pid);
	return p && p->has_calls;
}

/* Work that ended before `hold` does not wait for its driver call. */
static int emit_all_work(struct gpu_model *m, u64 before, u64 hold)
{
	struct gpu_work_item *w;
	int err = gpu_queue__sort(&m->work);
	u32 i;

	for (i = 0; !err && i < m->work.n; i++) {
		w = gpu_queue__at(&m->work, i);
		if (w->end >= before || may_get_call(m, w, hold))
			break;
		if (!w->work.host_time && gpu_order__is_used(m, w->work.pid))
			err = gpu_order__take_work(m, w);
		else
			err = gpu_model__emit_work(m, w);
	}
	gpu_queue__drop(&m->work, i);
	return err;
}

static int emit_memory(struct gpu_model *m, u64 before)
{
	struct gpu_memory_item *a;
	int err = gpu_queue__sort(&m->memory);
	u32 i;

	for (i = 0; !err && i < m->memory.n; i++) {
		a = gpu_queue__at(&m->memory, i);
		if (a->time >= before)
			break;
		err = gpu_memory__emit(m, a);
	}
	gpu_queue__drop(&m->memory, i);
	return err;
}

static int emit_before(struct gpu_model *m, u64 before, u64 hold)
{
	u64 ahead = before < ~0ull - AHEAD ? before + AHEAD : ~0ull;
	int err = emit_calls(m, ahead);

	if (!err)
		err = take_driver(m, ahead);
	if (!err)
		err = emit_all_work(m, before, hold);
	return err ? err : emit_memory(m, before);
}

/* The time in the middle of a full queue, so that half of it is emitted; else 0. */
static u64 pressure(struct gpu_queue *q, int *err)
{
	u64 time = 0;

	if (q->n < QUEUE_MAX)
		return 0;
	*err = gpu_queue__sort(q);
	if (!*err)
		memcpy(&time, gpu_queue__at(q, q->n / 2), sizeof(time));
	return time + 1;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Call after each chunk: within a chunk events are ordered by kind, not by time. */
static int settle(struct gpu_model *m)
{
	u64 before = m->newest > LAG ? m->newest - LAG : 0, hold = m->newest > HOLD ? m->newest - HOLD : 0, full;
	int err = 0;

	full = later(pressure(&m->calls, &err), pressure(&m->driver, &err));
	if (!err)
		full = later(full, pressure(&m->memory, &err));
	if (!err) {
		u64 work = pressure(&m->work, &err);

		hold = later(hold, work);
		full = later(full, work);
	}
	if (err || (!full && m->newest < m->flushed + STEP))
		return err;
	m->flushed = m->newest;
	return emit_before(m, later(before, full), hold);
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct gpu_model *m = arg;
	u16 id = rows__event(rows)->id;
	int err = 0;

	/* in a chunk, kinds are in order of their ids */
	if (id <= m->last_kind)
		err = settle(m);
	m->last_kind = id;
	return err ? err : gpu_fields__take(m, rows);
}

static void begin(struct gpu_model *m, u64 from, u64 to, const struct trace_ids *pids,
		  const struct gpu_listener *listener, void *arg)
{
	m->from = from;
	m->to = to;
	m->pids = pids ? *pids : (struct trace_ids){};
	m->listener = listener;
	m->arg = arg;
	m->coverage = (struct gpu_coverage){ 0 };
	m->launches = m->newest = m->flushed = 0;
	m->last_kind = 0;
	m->calls.size = sizeof(struct gpu_host_item);
	m->driver.size = sizeof(struct gpu_driver_item);
	m->work.size = sizeof(struct gpu_work_item);
	m->memory.size = sizeof(struct gpu_memory_item);
	m->order_calls.size = sizeof(struct gpu_host_item);
	m->order_work.size = sizeof(struct gpu_work_item);
	m->order_full = false;
	map__free(&m->unended);
	map__init(&m->unended, sizeof(u32), sizeof(struct gpu_unended));
	map__init(&m->threads, sizeof(struct gpu_thread_key), sizeof(struct gpu_thread));
	map__init(&m->streams, sizeof(struct stream_key), sizeof(u64));
}

static void end(struct gpu_model *m)
{
	gpu_queue__free(&m->calls);
	gpu_queue__free(&m->driver);
	gpu_queue__free(&m->work);
	gpu_queue__free(&m->memory);
	gpu_queue__free(&m->order_calls);
	gpu_queue__free(&m->order_work);
	gpu_join__free(m);
	MAPS_FREE(&m->streams, &m->addresses);
	free(m->fields);
	m->fields = NULL;
}

static void count_clock_error(struct gpu_model *m)
{
	u32 i;

	for (i = 0; i < m->processes.n; i++) {
		const struct gpu_process *p = map__value(&m->processes, i);

		if (trace_ids__have(&m->pids, *(const u32 *)map__key(&m->processes, i)))
			m->coverage.clock_error = later(m->coverage.clock_error, p->clock_error);
	}
}

int gpu_model__read(struct gpu_model *m, u64 from, u64 to, const struct trace_ids *pids,
		    const struct gpu_listener *listener, void *arg, struct gpu_coverage *coverage)
{
	struct trace_filter filter = {
		.from = from > BEFORE ? from - BEFORE : 0,
		.to = to && to < ~0ull - AFTER ? to + AFTER : 0,
		.pids = pids ? *pids : (struct trace_ids){},
	};
	const struct schema_event **kinds;
	int err;

	begin(m, from, to, pids, listener, arg);
	err = gpu_fields__new(m);
	kinds = err ? NULL : gpu_fields__kinds(m);
	if (!err && !kinds)
		err = -ENOMEM;
	filter.kinds = kinds;
	if (!err && kinds[0])
		err = trace__read(m->trace, &filter, on_rows, m);
	if (!err)
		err = emit_before(m, ~0ull, ~0ull);
	if (!err)
		err = gpu_order__end(m);
	if (!err) {
		gpu_join__end(m);
		count_clock_error(m);
	}
	if (coverage)
		*coverage = m->coverage;
	free(kinds);
	end(m);
	return err;
}

int gpu_model__new(struct gpu_model **out, struct trace *t, const struct names *names)
{
	struct gpu_model *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->trace = t;
	m->names = names;
	m->schema = trace__schema(t);
	err = gpu_facts__load(m);
	if (err)
		gpu_model__free(m);
	else
		*out = m;
	return err;
}

void gpu_model__free(struct gpu_model *m)
{
	if (!m)
		return;
	gpu_facts__free(m);
	gpu_names__free(m);
	map__free(&m->unended);
	free(m);
}
