// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes GPU work with the names and arguments of torch.profiler's traces (Kineto): the GPU is the process, the stream
 * the thread, and a flow "ac2g" leads from the launching call to the work. Streams of several processes with one number
 * get thread numbers of their own; argument `stream` is CUDA's number.
 */
#include <errno.h>
#include <string.h>

#include "core/shim.h"
#include "export/chrome.h"
#include "export/gpus.h"
#include "model/view.h"
#include "output/json_writer.h"
#include "util/array.h"
#include "util/path.h"

#define WARP_SIZE 32 /* of all of NVIDIA's GPUs */

#define NEXT_SAME 1000000 /* added to the number of a stream whose thread number is in use */

/* A stream has several lanes if its work overlaps. */
struct stream_key {
	u32 pid, device, context, stream, lane;
};

struct context_key {
	u32 pid, context;
};

struct drawn_thread {
	u32 gpu, tid;
};

struct stream_lane {
	struct drawn_thread thread; /* its tid is plus one; 0: none yet */
	struct lane lane;
};

struct pass {
	struct export *e;
	struct gpu_model *model;
	struct gpus gpus;
	struct gpu_launches launches;
	struct map streams; /* struct stream_key -> struct stream_lane */
	struct map devices; /* struct context_key -> u32: device plus one */
	struct map threads; /* struct drawn_thread -> u32: number of streams that share it */
	struct chrome_annotations annotations; /* of format kineto */
};

static bool is_kineto(const struct pass *p)
{
	return ((const struct chrome *)p->e->data)->is_kineto;
}

static void put_thread_names(struct pass *p, const struct stream_key *stream, const struct drawn_thread *t)
{
	char name[128], label[64];

	gpus__name(&p->gpus, t->gpu, name, sizeof(name));
	chrome__put_name(p->e, "process_name", t->gpu, t->tid, name);
	snprintf(name, sizeof(name), "stream %u (%s)", stream->stream,
		 names__label(p->e->names, label, sizeof(label), stream->pid, 0));
	chrome__put_name(p->e, "thread_name", t->gpu, t->tid, name);
	if (is_kineto(p))
		chrome_kineto__put_stream(p->e, t->gpu, t->tid);
	chrome__next_event(p->e);
	fprintf(p->e->out,
		"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%u,\"tid\":%u,\"args\":{\"labels\":\"GPU %u\"}}",
		t->gpu, t->tid, t->gpu);
}

/* Returns the first lane of the stream on which the work fits, NULL without memory. */
static struct stream_lane *find_lane(struct pass *p, struct stream_key *key, const struct interval *span)
{
	struct stream_lane *l;

	for (;; key->lane++) {
		l = map__get(&p->streams, key);
		if (!l || lane__fits(&l->lane, span))
			return l;
	}
}

/* Finds the process and thread on which work is drawn. Returns 0 or -ENOMEM. */
static int find_task(struct pass *p, const struct gpu_work *w, const struct interval *span, struct drawn_thread *out)
{
	struct stream_key key = { w->pid, w->device, w->context, w->stream, 0 };
	struct stream_lane *l = find_lane(p, &key, span);
	u32 gpu = gpus__number(&p->gpus, w->pid, w->device), *same;

	if (!l || gpu == GPUS_MAX)
		return -ENOMEM;
	if (!l->thread.tid) {
		*out = (struct drawn_thread){ gpu, w->stream };
		same = map__get(&p->threads, out);
		if (!same)
			return -ENOMEM;
		l->thread = (struct drawn_thread){ gpu, w->stream + NEXT_SAME * (*same)++ + 1 };
		*out = (struct drawn_thread){ gpu, l->thread.tid - 1 };
		put_thread_names(p, &key, out);
	}
	*out = (struct drawn_thread){ gpu, l->thread.tid - 1 };
	return lane__add(&l->lane, span);
}

static void put_head(struct pass *p, const char *phase, const char *category, const char *name)
{
	chrome__next_event(p->e);
	fprintf(p->e->out, "{\"ph\":\"%s\",\"name\":", phase);
	json__print_text(p->e->out, name, strlen(name));
	fprintf(p->e->out, ",\"cat\":\"%s\"", category);
}

static void put_where(struct pass *p, u32 pid, u32 tid, u64 time)
{
	fprintf(p->e->out, ",\"pid\":%u,\"tid\":%u,\"ts\":", chrome__number(pid), chrome__number(tid));
	chrome__put_time(p->e, time);
}

/* Returns the id of flows to the work: in Kineto's form, which has one process, the correlation id. */
static u64 flow_of(const struct pass *p, const struct gpu_work *w)
{
	return is_kineto(p) ? w->correlation : w->launch->number;
}

/* Writes the number of the operator that launched the work as first argument. */
static void put_operator(struct pass *p, const struct gpu_launch *l)
{
	u32 number = 0;

	if (is_kineto(p) && l && l->tid)
		number = kineto_ids__around(&((const struct chrome *)p->e->data)->ids, l->tid, l->start);
	if (number)
		fprintf(p->e->out, "\"External id\":%u,", number);
}

/* Writes the flow's start and, if only CUPTI recorded the launch, the driver's call. */
static int put_launch(struct pass *p, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	struct interval span = { l->start, l->end > l->start ? l->end : l->start };
	u32 tid = l->tid;

	if (chrome__put_names(p->e, l->pid, l->tid))
		return -ENOMEM;
	if (!l->probed) {
		if (chrome__place(p->e, l->pid, l->tid, "gpu_call", NULL, &span, &tid))
			return -ENOMEM;
		put_head(p, "X", l->function && path__begins_with(l->function, "cuda") ? "cuda_runtime" : "cuda_driver",
			 l->function ? l->function : "launch");
		put_where(p, l->pid, tid, l->start);
		chrome__put_dur(p->e, l->start, l->end);
		fputs(",\"args\":{", p->e->out);
		put_operator(p, l);
		fprintf(p->e->out, "\"correlation\":%u}}", w->correlation);
	}
	put_head(p, "s", "ac2g", "ac2g");
	put_where(p, l->pid, tid, l->start);
	fprintf(p->e->out, ",\"id\":%llu}", flow_of(p, w));
	return 0;
}

/* Returns "pinned" as "Pinned". */
static char *capitalized(const char *text, char *buf, size_t size)
{
	snprintf(buf, size, "%s", text);
	if (*buf >= 'a' && *buf <= 'z')
		*buf -= 'a' - 'A';
	return buf;
}

/* Writes the title that torch.profiler gives to such work. */
static void put_title(struct pass *p, const struct gpu_work *w)
{
	const char *category = w->kind == GPU_COPY ? "gpu_memcpy" : w->kind == GPU_SET ? "gpu_memset" : "kernel";
	char name[96], from[32], to[32];

	capitalized(gpu_memory__name(w->from_memory), from, sizeof(from));
	capitalized(gpu_memory__name(w->to_memory), to, sizeof(to));
	if (w->kind == GPU_COPY)
		snprintf(name, sizeof(name), "Memcpy %s (%s -> %s)", gpu_copy__name(w->copy_kind), from, to);
	else if (w->kind == GPU_SET)
		snprintf(name, sizeof(name), "Memset (%s)", to);
	put_head(p, "X", category, w->kind == GPU_COPY || w->kind == GPU_SET ? name : gpu_work__title(p->model, w));
}

static void put_shape(struct pass *p, const struct gpu_work *w)
{
	const struct gpu_device_facts *device = gpu_model__device(p->model, w->pid, w->device);
	double blocks = (double)w->grid[0] * w->grid[1] * w->grid[2];
	double threads = (double)w->block[0] * w->block[1] * w->block[2];
	FILE *out = p->e->out;

	fprintf(out, ",\"registers per thread\":%u,\"shared memory\":%llu", w->registers,
		(u64)w->static_shared + w->dynamic_shared);
	fprintf(out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", w->grid[0], w->grid[1], w->grid[2], w->block[0],
		w->block[1], w->block[2]);
	if (device && device->multiprocessors)
		fprintf(out, ",\"blocks per SM\":%.6g,\"warps per SM\":%.6g", blocks / device->multiprocessors,
			blocks * threads / WARP_SIZE / device->multiprocessors);
}

static void put_transfer(FILE *out, const struct gpu_work *w)
{
	fprintf(out, w->bytes > CHROME_EXACT ? ",\"bytes\":\"%llu\"" : ",\"bytes\":%llu", w->bytes);
	if (w->end > w->start)
		fprintf(out, ",\"memory bandwidth (GB/s)\":%.6g", (double)w->bytes / (double)(w->end - w->start));
}

static void put_args(struct pass *p, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	FILE *out = p->e->out;
	char label[STACK_LABEL];

	fputs(",\"args\":{", out);
	put_operator(p, l);
	fprintf(out, "\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u", w->device, w->context, w->stream,
		w->correlation);
	if (w->kind == GPU_KERNEL)
		put_shape(p, w);
	else if (w->kind != GPU_GRAPH)
		put_transfer(out, w);
	if (w->graph)
		fprintf(out, ",\"graph id\":%u,\"graph node id\":%llu", w->graph, w->graph_node);
	if (l) {
		fprintf(out, ",\"queued\":%llu", w->queued);
		names__label(p->e->names, label, sizeof(label), l->pid, l->tid);
		fputs(",\"launched by\":", out);
		json__print_text(out, label, strlen(label));
	}
	if (l && l->stack) {
		fputs(",\"launched at\":", out);
		stacks__label(p->e->stacks, l->stack, label, sizeof(label));
		json__print_text(out, label, strlen(label));
	}
	fprintf(out, "%s}}", w->open ? ",\"not ended\":true" : "");
}

static int on_work(const struct gpu_work *w, void *arg)
{
	const struct gpu_launch *l = w->launch;
	struct pass *p = arg;
	struct interval span = { w->start, w->end > w->start ? w->end : w->start };
	struct drawn_thread t;

	/* Without device times only the call is drawn. */
	if (w->host_time)
		return 0;
	span.start = gpus__start(&p->gpus, w);
	if (find_task(p, w, &span, &t))
		return -ENOMEM;
	if (l && l->tid && gpu_launches__first(&p->launches, l->number) && put_launch(p, w))
		return -ENOMEM;
	put_title(p, w);
	put_where(p, t.gpu, t.tid, span.start);
	chrome__put_dur(p->e, span.start, span.end);
	put_args(p, w);
	if (l && l->tid && is_kineto(p) &&
	    chrome_annotations__add(&p->annotations, &((const struct chrome *)p->e->data)->ids, l,
				    &(struct drawn_place){ t.gpu, t.tid, span.start }, span.end))
		return -ENOMEM;
	if (l && l->tid) {
		put_head(p, "f", "ac2g", "ac2g");
		put_where(p, t.gpu, t.tid, span.start);
		fprintf(p->e->out, ",\"id\":%llu,\"bp\":\"e\"}", flow_of(p, w));
	}
	return ferror(p->e->out) ? -EIO : 0;
}

static int on_contexts(const struct rows *rows, void *arg)
{
	struct pass *p = arg;

	ROWS_EACH(v, rows) {
		struct context_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "context") };
		u32 *device = map__get(&p->devices, &key);

		if (!device)
			return -ENOMEM;
		*device = (u32)view__get(&v, "device") + 1;
	}
	return 0;
}

/* Writes an id, of which 0 or CUPTI's largest number means that there is none. */
static void put_id(FILE *out, const char *name, u32 id)
{
	fprintf(out, ",\"%s\":%lld", name, id == ~0u ? -1 : (s64)id);
}

static int put_sync(struct pass *p, const struct view *v)
{
	static const char *const names[] = {
		[GPU_SYNC_UNKNOWN] = "Unknown Sync",
		[GPU_SYNC_EVENT] = "Event Sync",
		[GPU_SYNC_STREAM_WAIT_EVENT] = "Stream Wait Event",
		[GPU_SYNC_STREAM] = "Stream Sync",
		[GPU_SYNC_CONTEXT] = "Context Sync",
	};
	struct gpu_work w = { .pid = (u32)view__get(v, "pid"), .context = (u32)view__get(v, "context") };
	const u32 *device = map__find(&p->devices, &(struct context_key){ w.pid, w.context });
	u32 stream = (u32)view__get(v, "stream"), kind = (u32)view__get(v, "kind");
	struct interval span = { (u64)view__get(v, "start"), (u64)view__get(v, "time") };
	const char *name = names[kind < ARRAY_LEN(names) ? kind : GPU_SYNC_UNKNOWN];
	FILE *out = p->e->out;
	struct drawn_thread t;

	span.start = span.start < span.end ? span.start : span.end;
	w.device = device ? *device - 1 : 0;
	w.stream = stream == ~0u ? 0 : stream;
	if (find_task(p, &w, &span, &t))
		return -ENOMEM;
	put_head(p, "X", "cuda_sync", name);
	put_where(p, t.gpu, t.tid, span.start);
	chrome__put_dur(p->e, span.start, span.end);
	fprintf(out, ",\"args\":{\"cuda_sync_kind\":\"%s\"", name);
	if (kind == GPU_SYNC_EVENT || kind == GPU_SYNC_STREAM_WAIT_EVENT) {
		fputs(",\"wait_on_stream\":-1,\"wait_on_cuda_event_record_corr_id\":-1", out);
		put_id(out, "wait_on_cuda_event_id", (u32)view__get(v, "cuda_event"));
	}
	put_id(out, "stream", kind == GPU_SYNC_CONTEXT ? ~0u : stream);
	fprintf(out, ",\"correlation\":%u,\"device\":%u,\"context\":%u}}", (u32)view__get(v, "correlation"), w.device,
		w.context);
	return ferror(out) ? -EIO : 0;
}

static int on_syncs(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = put_sync(arg, &v);
	return err;
}

static bool is_span(const struct schema_event *e)
{
	return e->is_span;
}

/* Waits for the GPU as CUPTI reports them, on the threads of their streams. */
static int put_syncs(struct pass *p)
{
	struct export *e = p->e;
	const struct schema_event *kinds[] = { schema__event(trace__schema(e->trace), "gpu_sync"), NULL };
	struct trace_filter filter = { .kinds = kinds, .pids = e->pids, .in_windows = is_span };
	int err = trace__read_kind(e->trace, "gpu_context", on_contexts, p);

	return err || !kinds[0] ? err : trace__read(e->trace, &filter, on_syncs, p);
}

int chrome__put_gpu_work(struct export *e)
{
	const struct gpu_listener listener = { .work = on_work };
	struct pass p = { .e = e };
	int err;

	if (!gpus__traced(e->trace) && !trace__has(e->trace, "gpu_sync"))
		return 0;
	map__init(&p.devices, sizeof(struct context_key), sizeof(u32));
	map__init(&p.streams, sizeof(struct stream_key), sizeof(struct stream_lane));
	map__init(&p.threads, sizeof(struct drawn_thread), sizeof(u32));
	chrome_annotations__init(&p.annotations);
	err = gpus__load(&p.gpus, e->trace);
	if (!err)
		err = gpu_model__new(&p.model, e->trace, e->names);
	if (!err)
		/* a reading that selects a time leaves out the pauses */
		err = gpu_model__read(p.model, e->facts->paused_ns ? 1 : 0, 0, e->pids.n ? &e->pids : NULL, &listener,
				      &p, NULL);
	if (!err)
		err = put_syncs(&p);
	if (!err)
		err = chrome_annotations__put(e, &p.annotations);
	chrome_annotations__free(&p.annotations);
	gpu_model__free(p.model);
	gpus__free(&p.gpus);
	gpu_launches__free(&p.launches);
	for (u32 i = 0; i < p.streams.n; i++)
		lane__free(&((struct stream_lane *)map__value(&p.streams, i))->lane);
	MAPS_FREE(&p.streams, &p.threads, &p.devices);
	return err;
}
