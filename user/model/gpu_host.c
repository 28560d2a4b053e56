// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Emits calls and, in a process without a shim, the work that is known from calls alone. */
#include "model/gpu_private.h"

#include <errno.h>
#include <string.h>

#include "probes/cuda/cuda.h"

static const u8 copy_kinds[] = {
	[CUDA_COPY_HTOH] = GPU_COPY_HTOH,
	[CUDA_COPY_HTOD] = GPU_COPY_HTOD,
	[CUDA_COPY_DTOH] = GPU_COPY_DTOH,
	[CUDA_COPY_DTOD] = GPU_COPY_DTOD,
};

const char *gpu_host__function(const struct gpu_model *m, u16 event, u16 probe)
{
	const char *name = probe ? names__probe(m->names, probe) : NULL;
	const struct schema_event *e = name ? NULL : schema__event_by_id(m->schema, event);

	return name ? name : e ? e->name : "?";
}

/* Returns the outermost call that contains c, else c itself. */
static const struct gpu_span *outermost(const struct gpu_model *m, const struct gpu_host_item *c)
{
	const struct gpu_span *s = gpu_join__outermost(m, c->pid, c->tid, c->span.start, c->span.end, 0);

	return s ? s : &c->span;
}

static bool is_same(const struct gpu_span *a, const struct gpu_span *b)
{
	return a->start == b->start && a->end == b->end && a->event == b->event && a->probe == b->probe;
}

static void fill(struct gpu_model *m, const struct gpu_host_item *c, struct gpu_work *w)
{
	switch (c->span.request) {
	case REQUEST_KERNEL:
		w->kind = GPU_KERNEL;
		w->name = gpu_facts__function(m, c->pid, c->span.object);
		memcpy(w->grid, c->grid, sizeof(w->grid));
		memcpy(w->block, c->block, sizeof(w->block));
		w->dynamic_shared = c->shared;
		break;
	case REQUEST_COPY:
		w->kind = GPU_COPY;
		w->copy_kind = c->kind == ~0u		    ? (u32)GPU_COPY_PTOP :
			       c->kind < sizeof(copy_kinds) ? copy_kinds[c->kind] :
							      (u32)GPU_COPY_UNKNOWN;
		w->bytes = c->bytes;
		break;
	case REQUEST_SET:
		w->kind = GPU_SET;
		w->bytes = c->bytes;
		w->to_memory = GPU_MEMORY_UNKNOWN;
		break;
	default:
		w->kind = GPU_GRAPH;
	}
}

/* Returns whether the call launches work that is not attributed to another call. */
static bool launches_work(const struct gpu_model *m, const struct gpu_host_item *c, const struct gpu_span *outer)
{
	const char *function;

	if (!gpu_request__is_work(c->span.request) || (c->span.ret && !c->open))
		return false;
	if (gpu_request__is_work(outer->request) && !is_same(outer, &c->span))
		return false;
	function = gpu_host__function(m, c->span.event, c->span.probe);
	/* cudaGraphUpload has the event of graph launches, but launches nothing */
	return c->span.request != REQUEST_GRAPH || !strstr(function, "Upload");
}

static int add_work(struct gpu_model *m, const struct gpu_host_item *c)
{
	struct gpu_work_item *i = gpu_queue__add(&m->work);

	if (!i)
		return -ENOMEM;
	i->end = c->end;
	i->tid = c->tid;
	i->work = (struct gpu_work){
		.host_time = true,
		.open = c->open,
		.pid = c->pid,
		.device = GPU_NO_DEVICE,
		.start = c->span.start,
		.end = c->end,
	};
	fill(m, c, &i->work);
	return 0;
}

/* The shim polls for a tracer once a second; work that was launched before that has no device record. */
static void count_unwatched(struct gpu_model *m, const struct gpu_process *p, const struct gpu_host_item *c)
{
	bool off = (p->first_on && c->end < p->first_on) || (p->last_off > p->last_on && c->span.start > p->last_off);

	m->coverage.unwatched += off && !c->open && gpu_model__is_selected(m, c->span.start, c->span.start);
}

int gpu_host__emit(struct gpu_model *m, const struct gpu_host_item *c)
{
	const struct gpu_span *outer = outermost(m, c);
	struct gpu_host_call call;
	int err = 0;

	if (launches_work(m, c, outer)) {
		const struct gpu_process *p = gpu_facts__process(m, c->pid);

		if (p && p->has_shim)
			count_unwatched(m, p, c);
		if (!p || !p->has_shim)
			err = add_work(m, c);
		else if (gpu_order__is_used(m, c->pid))
			err = gpu_order__take_call(m, c);
	}
	if (!err)
		err = gpu_memory__take_call(m, c);
	if (err || !m->listener->call || !gpu_model__is_selected(m, c->span.start, c->end))
		return err;
	call = (struct gpu_host_call){
		.pid = c->pid,
		.tid = c->tid,
		.start = c->span.start,
		.end = c->end,
		.function = gpu_host__function(m, c->span.event, c->span.probe),
		.event = schema__event_by_id(m->schema, c->span.event),
		.ret = c->span.ret,
		.nested = !is_same(outer, &c->span),
		.open = c->open,
		.untimed = c->untimed,
		.stack = c->span.stack,
		.gil = c->span.gil,
	};
	return m->listener->call(&call, m->arg);
}
