// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes GPU work as GpuRenderStageEvents: a packet for each kernel, copy or set, on a track for each stream. Perfetto
 * puts overlapping work of a stream on rows of its own. The launching call refers to the work by the event's number
 * (GpuCorrelation). The number is a hash of the call's thread and start, so that the call can be written before its
 * work is known; all nodes of a graph launch share it.
 *
 * The UI builds its tree (process, CUDA, device, context, stream) from the numeric arguments named `device` and
 * `stream`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "export/perfetto.h"

/* TrackEvent, an extension: GpuCorrelation */
enum { EVENT_GPU_CORRELATION = 3000, CORRELATION_SUBMITTED = 1 };
/* InternedData; the last is an extension */
enum { INTERNED_CONTEXTS = 23, INTERNED_SPECIFICATIONS = 24, INTERNED_KERNELS = 1000 };
/* InternedGraphicsContext */
enum { CONTEXT_IID = 1, CONTEXT_PID = 2, CONTEXT_API = 3, API_CUDA = 4 };
/* InternedGpuRenderStageSpecification */
enum {
	SPECIFICATION_IID = 1,
	SPECIFICATION_NAME = 2,
	SPECIFICATION_CATEGORY = 4,
	CATEGORY_OTHER = 0,
	CATEGORY_COMPUTE = 2
};
/* InternedComputeKernel */
enum { KERNEL_IID = 1, KERNEL_NAME = 2, KERNEL_DEMANGLED = 3, KERNEL_ARCH = 4 };
/* GpuRenderStageEvent, ComputeKernelLaunch, ExtraComputeArg */
enum {
	STAGE_EVENT_ID = 1,
	STAGE_DURATION = 2,
	STAGE_CONTEXT = 5,
	STAGE_GPU = 11,
	STAGE_QUEUE = 13,
	STAGE_STAGE = 14,
	STAGE_KERNEL = 19,
	STAGE_NAME = 20,
	STAGE_LAUNCH = 21
};
enum { LAUNCH_GRID = 1, LAUNCH_BLOCK = 2, LAUNCH_ARGUMENT = 3 };
enum { ARGUMENT_NAME = 1, ARGUMENT_UINT = 4, ARGUMENT_DOUBLE = 5, ARGUMENT_TEXT_IID = 7 };

#define ID_BITS	 56
#define MAX_GPUS 64 /* GPUs that are described, as a trace may claim any number */

struct context_key {
	u32 pid, device, context, unused;
};

struct queue_key {
	u32 pid, device, context, stream;
};

/* Stages and queues are both specifications and share one number space. */
struct specification_key {
	enum { OF_STAGE, OF_QUEUE } kind;
	u32 stage;
	struct queue_key queue;
};

struct kernel_key {
	const char *name;
	u64 gpu;
};

struct gpu_drawing {
	struct perfetto *p;
	struct gpu_model *model; /* owns names that are interned by address */
	struct map contexts, specifications, kernels; /* -> struct interned */
	struct map first_contexts; /* u64 pid and device -> u32 context */
	struct gpu_launches launches;
	u64 n_unjoined; /* work items without a launch */
};

static u64 submission(u32 pid, u32 tid, u64 start)
{
	u64 parts[3] = { pid, tid, start };

	return XXH64(parts, sizeof(parts), 0) >> (64 - ID_BITS);
}

void track_event__submission(struct perfetto *p, u32 pid, u32 tid, u64 start)
{
	size_t at = pb__begin(&p->packet, EVENT_GPU_CORRELATION);

	pb__int(&p->packet, CORRELATION_SUBMITTED, submission(pid, tid, start));
	pb__end(&p->packet, at);
}

/* Describes the GPUs; their numbers are their positions here. */
void perfetto__put_gpus(struct perfetto *p)
{
	u32 n = p->gpus.n < MAX_GPUS ? p->gpus.n : MAX_GPUS;
	char name[96], arch[24], uuid[16];
	size_t info, at;

	if (!n)
		return;
	packet__begin(p, 0);
	info = pb__begin(&p->packet, PACKET_GPU_INFO);
	for (u32 i = 0; i < n; i++) {
		const struct gpu *gpu = &p->gpus.list[i];

		at = pb__begin(&p->packet, 1);
		gpus__name(&p->gpus, i, name, sizeof(name));
		pb__text(&p->packet, 1, name, strlen(name));
		if (gpu->is_described)
			pb__text(&p->packet, 2, "NVIDIA", 6);
		pb__text(&p->packet, 3, gpu->model, strlen(gpu->model));
		snprintf(arch, sizeof(arch), "sm_%u%u", gpu->major, gpu->minor);
		if (gpu->major)
			pb__text(&p->packet, 4, arch, strlen(arch));
		memcpy(uuid, &gpu->uuid_first, 8);
		memcpy(uuid + 8, &gpu->uuid_last, 8);
		if (gpu->uuid_first || gpu->uuid_last)
			pb__bytes(&p->packet, 5, uuid, sizeof(uuid));
		pb__end(&p->packet, at);
	}
	pb__end(&p->packet, info);
	packet__end(p, false);
}

static u64 put_context(struct gpu_drawing *g, const struct gpu_work *w)
{
	struct context_key key = { w->pid, w->device, w->context, 0 };
	struct pb *out = &g->p->interned;
	bool must_emit;
	u64 number = perfetto__number(g->p, &g->contexts, &key, &must_emit);
	size_t at;

	if (must_emit) {
		at = pb__begin(out, INTERNED_CONTEXTS);
		pb__int(out, CONTEXT_IID, number);
		pb__int(out, CONTEXT_PID, names__number(g->p->e->names, w->pid));
		pb__int(out, CONTEXT_API, API_CUDA);
		pb__end(out, at);
	}
	return number;
}

static u64 put_specification(struct gpu_drawing *g, const struct specification_key *key, const char *name, u64 category)
{
	struct pb *out = &g->p->interned;
	bool must_emit;
	u64 number = perfetto__number(g->p, &g->specifications, key, &must_emit);
	size_t at;

	if (must_emit) {
		at = pb__begin(out, INTERNED_SPECIFICATIONS);
		pb__int(out, SPECIFICATION_IID, number);
		pb__text(out, SPECIFICATION_NAME, name, strlen(name));
		pb__int(out, SPECIFICATION_CATEGORY, category);
		pb__end(out, at);
	}
	return number;
}

static u64 put_stage(struct gpu_drawing *g, const struct gpu_work *w)
{
	struct specification_key key = { .kind = OF_STAGE, .stage = w->kind };
	bool computes = w->kind == GPU_KERNEL || w->kind == GPU_GRAPH;

	return put_specification(g, &key, gpu_work__name(w), computes ? CATEGORY_COMPUTE : CATEGORY_OTHER);
}

/* Names a queue by its stream and, unless it is the device's first, by its context. */
static u64 put_queue(struct gpu_drawing *g, const struct gpu_work *w)
{
	struct specification_key key = { .kind = OF_QUEUE, .queue = { w->pid, w->device, w->context, w->stream } };
	u64 device = (u64)w->pid << 32 | w->device;
	u32 *first = map__get(&g->first_contexts, &device);
	char label[64], name[128];
	int len;

	names__label(g->p->e->names, label, sizeof(label), w->pid, 0);
	len = snprintf(name, sizeof(name), "%s: stream %u", label, w->stream);
	if (first && !*first)
		*first = w->context;
	if (first && *first != w->context)
		snprintf(name + len, sizeof(name) - len, " of context %u", w->context);
	return put_specification(g, &key, name, CATEGORY_OTHER);
}

static u64 put_kernel(struct gpu_drawing *g, const struct gpu_work *w, u32 gpu)
{
	const char *demangled = gpu_model__demangled(g->model, w->name);
	const struct gpu *about = gpu < g->p->gpus.n ? &g->p->gpus.list[gpu] : NULL;
	struct kernel_key key = { w->name, gpu };
	struct pb *out = &g->p->interned;
	char arch[24];
	bool must_emit;
	u64 number = perfetto__number(g->p, &g->kernels, &key, &must_emit);
	size_t at;

	if (!must_emit)
		return number;
	at = pb__begin(out, INTERNED_KERNELS);
	pb__int(out, KERNEL_IID, number);
	pb__text(out, KERNEL_NAME, w->name, strlen(w->name));
	if (demangled)
		pb__text(out, KERNEL_DEMANGLED, demangled, strlen(demangled));
	if (about && about->major) {
		snprintf(arch, sizeof(arch), "sm_%u%u", about->major, about->minor);
		pb__text(out, KERNEL_ARCH, arch, strlen(arch));
	}
	pb__end(out, at);
	return number;
}

static size_t begin_argument(struct perfetto *p, const char *name)
{
	size_t at = pb__begin(&p->packet, LAUNCH_ARGUMENT);

	pb__int(&p->packet, ARGUMENT_NAME, perfetto__intern(p, INTERN_LAUNCH_ARGUMENT, name, strlen(name)));
	return at;
}

static void put_number(struct perfetto *p, const char *name, u64 value)
{
	size_t at = begin_argument(p, name);

	pb__int(&p->packet, ARGUMENT_UINT, value);
	pb__end(&p->packet, at);
}

static void put_interned(struct perfetto *p, const char *name, enum intern_by by, u64 key, const char *text)
{
	size_t at = begin_argument(p, name);

	pb__int(&p->packet, ARGUMENT_TEXT_IID, perfetto__intern_by(p, INTERN_STRING, by, key, text, strlen(text)));
	pb__end(&p->packet, at);
}

static void put_text(struct perfetto *p, const char *name, const char *text)
{
	put_interned(p, name, BY_ADDRESS, (u64)(uintptr_t)text, text);
}

static void put_dimensions(struct perfetto *p, u32 field, const u32 *xyz)
{
	size_t at = pb__begin(&p->packet, field);

	for (u32 i = 0; i < 3; i++)
		pb__int(&p->packet, i + 1, xyz[i]);
	pb__end(&p->packet, at);
}

static void put_shape(struct perfetto *p, const struct gpu_work *w)
{
	put_dimensions(p, LAUNCH_GRID, w->grid);
	put_dimensions(p, LAUNCH_BLOCK, w->block);
	/* The UI's page about kernels looks for these names. */
	put_number(p, "registers_per_thread", w->registers);
	put_number(p, "shared_mem_static", w->static_shared);
	put_number(p, "shared_mem_dynamic", w->dynamic_shared);
}

static void put_transfer(struct perfetto *p, const struct gpu_work *w)
{
	size_t at;

	put_number(p, "bytes", w->bytes);
	if (w->end > w->start) {
		at = begin_argument(p, "bandwidth (GB/s)");
		pb__double(&p->packet, ARGUMENT_DOUBLE, (double)w->bytes / (double)(w->end - w->start));
		pb__end(&p->packet, at);
	}
	if (w->kind == GPU_COPY) {
		put_text(p, "copy", gpu_copy__name(w->copy_kind));
		put_text(p, "from", gpu_memory__name(w->from_memory));
	}
	put_text(p, "to", gpu_memory__name(w->to_memory));
	put_number(p, "asynchronous", w->asynchronous);
}

/* Adds the launching thread, its Python line, and the queue time */
static void put_launch_arguments(struct perfetto *p, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	char buf[STACK_LABEL], label[64];

	if (l->function)
		put_text(p, "launched_by", l->function);
	if (l->tid)
		put_interned(p, "launching_thread", BY_THREAD, (u64)l->pid << 32 | l->tid,
			     names__label(p->e->names, label, sizeof(label), l->pid, l->tid));
	if (l->stack)
		put_interned(p, "launched_at", BY_STACK, l->stack,
			     stacks__label(p->e->stacks, l->stack, buf, sizeof(buf)));
	if (gpu_launch__gil_state(l))
		put_text(p, "gil_at_launch", gpu_launch__gil_state(l));
	put_number(p, "queued_ns", w->queued);
	if (w->stream_free > l->end)
		put_number(p, "stream_busy_ns", w->stream_free - l->end);
}

static void put_arguments(struct perfetto *p, const struct gpu_work *w)
{
	size_t at = pb__begin(&p->packet, STAGE_LAUNCH);

	if (w->kind == GPU_KERNEL)
		put_shape(p, w);
	put_number(p, "device", w->device);
	put_number(p, "stream", w->stream);
	put_number(p, "correlation", w->correlation);
	if (w->kind == GPU_COPY || w->kind == GPU_SET)
		put_transfer(p, w);
	if (w->graph)
		put_number(p, "graph", w->graph);
	if (w->graph_node)
		put_number(p, "graph_node", w->graph_node);
	if (w->launch)
		put_launch_arguments(p, w);
	if (w->open)
		put_number(p, "not_ended", 1);
	pb__end(&p->packet, at);
}

static void put_work(struct gpu_drawing *g, const struct gpu_work *w, u32 gpu, u64 start)
{
	const char *title = gpu_work__title(g->model, w);
	const struct gpu_launch *l = w->launch;
	struct perfetto *p = g->p;
	size_t at;

	packet__begin(p, start);
	at = pb__begin(&p->packet, PACKET_GPU_STAGE);
	/* Work without a launch gets a number that no launch has. */
	pb__int(&p->packet, STAGE_EVENT_ID,
		l && l->tid ? submission(l->pid, l->tid, l->start) : 1ull << ID_BITS | ++g->n_unjoined);
	pb__int(&p->packet, STAGE_DURATION, w->end - start);
	pb__int(&p->packet, STAGE_CONTEXT, put_context(g, w));
	pb__int(&p->packet, STAGE_GPU, gpu);
	pb__int(&p->packet, STAGE_QUEUE, put_queue(g, w));
	pb__int(&p->packet, STAGE_STAGE, put_stage(g, w));
	if (w->kind == GPU_KERNEL && w->name)
		pb__int(&p->packet, STAGE_KERNEL, put_kernel(g, w, gpu));
	pb__int(&p->packet, STAGE_NAME, perfetto__intern(p, INTERN_NAME, title, strlen(title)));
	put_arguments(p, w);
	pb__end(&p->packet, at);
	packet__end(p, true);
}

/* Draws a launch that only CUPTI recorded; one that uprobes recorded is drawn like all calls. */
static void put_launch(struct gpu_drawing *g, const struct gpu_launch *l)
{
	const struct schema_event *e = schema__event(g->p->schema, "gpu_call");
	struct interval span = { l->start, l->end > l->start ? l->end : l->start };
	struct perfetto *p = g->p;
	const struct track *t;
	size_t at;

	if (l->probed || !l->tid || !e || !gpu_launches__first(&g->launches, l->number))
		return;
	t = perfetto__reserve_track(p, l->pid, l->tid, e, &span);
	if (!t)
		return;
	at = track_event__begin(p, span.start, t, TRACK_EVENT_BEGIN);
	track_event__category(p, "gpu");
	track_event__name(p, l->function ? l->function : "launch");
	track_event__submission(p, l->pid, l->tid, l->start);
	track_event__end(p, at);
	at = track_event__begin(p, span.end, t, TRACK_EVENT_END);
	track_event__end(p, at);
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct gpu_drawing *g = arg;
	struct perfetto *p = g->p;
	u32 gpu;

	/* The time of the call is not that of the work: only a mark states that device times are missing. */
	if (w->host_time)
		return perfetto__gpu_host_time(p, w);
	perfetto__maybe_next_frame(p);
	gpu = gpus__number(&p->gpus, w->pid, w->device);
	if (gpu == GPUS_MAX || w->end < w->start)
		return gpu == GPUS_MAX ? -ENOMEM : 0;
	if (w->launch)
		put_launch(g, w->launch);
	put_work(g, w, gpu, gpus__start(&p->gpus, w));
	perfetto__gpu_busy(p, gpu, &(struct interval){ w->start, w->end });
	return p->packet.failed || p->interned.failed ? -ENOMEM : p->err;
}

static int on_allocation(const struct gpu_allocation *a, void *arg)
{
	struct perfetto *p = ((struct gpu_drawing *)arg)->p;
	int err;

	perfetto__maybe_next_frame(p);
	err = perfetto__gpu_memory(p, a);
	return err ? err : p->packet.failed ? -ENOMEM : p->err;
}

int perfetto__gpu_work(struct perfetto *p)
{
	const struct gpu_listener listener = { .work = on_work, .allocation = on_allocation };
	struct gpu_coverage coverage = { 0 };
	struct gpu_drawing *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	p->gpu = g;
	g->p = p;
	map__init(&g->contexts, sizeof(struct context_key), sizeof(struct interned));
	map__init(&g->specifications, sizeof(struct specification_key), sizeof(struct interned));
	map__init(&g->kernels, sizeof(struct kernel_key), sizeof(struct interned));
	map__init(&g->first_contexts, sizeof(u64), sizeof(u32));
	err = gpu_model__new(&g->model, p->e->trace, p->e->names);
	if (!err)
		err = gpu_model__read(g->model, 0, 0, NULL, &listener, g, &coverage);
	if (!err)
		perfetto__finish_gpu_counters(p, &coverage);
	return err;
}

void perfetto__free_gpu(struct perfetto *p)
{
	struct gpu_drawing *g = p->gpu;

	if (!g)
		return;
	gpu_model__free(g->model);
	MAPS_FREE(&g->contexts, &g->specifications, &g->kernels, &g->first_contexts);
	gpu_launches__free(&g->launches);
	free(g);
}
