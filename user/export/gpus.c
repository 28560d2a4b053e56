// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gil_held.h"
#include "core/shim.h"
#include "export/lane.h"
#include "model/view.h"
#include "util/array.h"

#define KEPT (1u << 16) /* launches that are remembered; a power of two */

struct uuid_key {
	u64 first, last;
};

struct device_key {
	u32 pid, device;
};

struct stream_key {
	u32 pid, device, context, stream;
};

static int grow(struct gpus *g, u32 n)
{
	struct gpu *more;

	if (n <= g->n)
		return 0;
	more = realloc(g->list, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + g->n, 0, (n - g->n) * sizeof(*more));
	g->list = more;
	g->n = n;
	return 0;
}

/* Gives a new GPU the number that its process uses for it, if that is free. */
static int take_number(struct gpus *g, u32 device, u32 *out)
{
	bool is_free = device < GPUS_MAX && (device >= g->n || !g->list[device].is_used);
	int err;

	*out = is_free ? device : g->n < GPUS_MAX ? g->n : GPUS_MAX - 1;
	err = grow(g, *out + 1);
	if (!err)
		g->list[*out].is_used = true;
	return err;
}

/* Returns the number of a UUID, and assigns one to a new UUID. */
static int number_of(struct gpus *g, const struct uuid_key *uuid, u32 device, u32 *out)
{
	u32 *known = map__get(&g->by_uuid, uuid);
	int err;

	if (!known)
		return -ENOMEM;
	if (!*known) {
		err = take_number(g, device, out);
		if (err)
			return err;
		*known = *out + 1;
	}
	*out = *known - 1;
	return 0;
}

static int take_device(struct gpus *g, const struct view *v)
{
	struct device_key device = { (u32)view__get(v, "pid"), (u32)view__get(v, "device") };
	struct uuid_key uuid = { (u64)view__get(v, "uuid_first"), (u64)view__get(v, "uuid_last") };
	const char *model;
	struct gpu *gpu;
	u32 number, len, *known = map__get(&g->by_device, &device);

	if (!known)
		return -ENOMEM;
	if (*known)
		return 0;
	/* Devices without a UUID are identified by their number. */
	if (!uuid.first && !uuid.last)
		uuid.last = 1 + (u64)device.device;
	if (number_of(g, &uuid, device.device, &number))
		return -ENOMEM;
	*known = number + 1;
	gpu = &g->list[number];
	/* NVML does not report the compute capability */
	if (gpu->is_described && (gpu->major || !view__get(v, "major")))
		return 0;
	gpu->is_described = true;
	model = view__text(v, schema_event__field(v->event, "model"), &len);
	snprintf(gpu->model, sizeof(gpu->model), "%.*s", (int)(len < 64 ? len : 64), model);
	gpu->major = (u32)view__get(v, "major");
	gpu->minor = (u32)view__get(v, "minor");
	gpu->memory = (u64)view__get(v, "memory");
	gpu->uuid_first = (u64)view__get(v, "uuid_first");
	gpu->uuid_last = (u64)view__get(v, "uuid_last");
	return 0;
}

static int take_clock(struct gpus *g, const struct view *v)
{
	u64 error = (u64)view__get(v, "error"), *known;
	u32 pid = (u32)view__get(v, "pid");

	known = map__get(&g->clock_errors, &pid);
	if (!known)
		return -ENOMEM;
	*known = error > *known ? error : *known;
	return 0;
}

static int on_rows(const struct rows *rows, void *arg)
{
	bool is_device = strcmp(rows__event(rows)->name, "gpu_clock") != 0;
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = is_device ? take_device(arg, &v) : take_clock(arg, &v);
	return err;
}

int gpus__load(struct gpus *g, struct trace *t)
{
	const struct schema_event *kinds[] = { schema__event(trace__schema(t), "gpu_device"),
					       schema__event(trace__schema(t), "gpu_clock"), NULL };
	struct trace_filter filter = { .kinds = kinds };
	int err;

	*g = (struct gpus){ 0 };
	map__init(&g->by_uuid, sizeof(struct uuid_key), sizeof(u32));
	map__init(&g->by_device, sizeof(struct device_key), sizeof(u32));
	map__init(&g->clock_errors, sizeof(u32), sizeof(u64));
	map__init(&g->streams, sizeof(struct stream_key), sizeof(struct interval));
	/* first, so that the numbers are NVML's, as in nvidia-smi */
	err = trace__read_kind(t, "nvml_device", on_rows, g);
	return !err && kinds[0] ? trace__read(t, &filter, on_rows, g) : err;
}

void gpus__free(struct gpus *g)
{
	MAPS_FREE(&g->by_uuid, &g->by_device, &g->clock_errors, &g->streams);
	free(g->list);
}

u32 gpus__number(struct gpus *g, u32 pid, u32 device)
{
	struct device_key key = { pid, device };
	struct uuid_key none = { 0, 1 + (u64)device };
	u32 number, *known = map__get(&g->by_device, &key);

	if (!known)
		return GPUS_MAX;
	if (!*known) {
		if (number_of(g, &none, device, &number))
			return GPUS_MAX;
		*known = number + 1;
	}
	return *known - 1;
}

u64 gpus__start(struct gpus *g, const struct gpu_work *w)
{
	struct stream_key key = { w->pid, w->device, w->context, w->stream };
	const u64 *error = map__find(&g->clock_errors, &w->pid);
	struct interval *last = map__get(&g->streams, &key);
	u64 start = w->start;

	/* Without memory the start is not corrected. */
	if (!last)
		return start;
	if (error && start >= last->start && start < last->end && last->end - start <= *error && last->end <= w->end)
		start = last->end;
	*last = (struct interval){ start, w->end };
	return start;
}

char *gpus__name(const struct gpus *g, u32 number, char *buf, size_t size)
{
	const char *model = number < g->n ? g->list[number].model : "";
	u32 equal = 0;

	for (u32 i = 0; i < g->n; i++)
		equal += !strcmp(g->list[i].model, model);
	if (!*model)
		snprintf(buf, size, "GPU %u", number);
	else if (equal > 1)
		snprintf(buf, size, "%s #%u", model, number);
	else
		snprintf(buf, size, "%s", model);
	return buf;
}

bool gpus__traced(const struct trace *t)
{
	static const char *const kinds[] = { "gpu_kernel", "gpu_memcpy", "gpu_memset", "gpu_graph" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (trace__has(t, kinds[i]))
			return true;
	return false;
}

const char *gpu_work__name(const struct gpu_work *w)
{
	static const char *const names[] = {
		[GPU_KERNEL] = "kernel", [GPU_COPY] = "memcpy", [GPU_SET] = "memset", [GPU_GRAPH] = "graph"
	};

	return names[w->kind];
}

const char *gpu_work__title(struct gpu_model *m, const struct gpu_work *w)
{
	const char *name = w->kind == GPU_KERNEL && w->name ? gpu_model__demangled(m, w->name) : NULL;

	if (w->kind == GPU_GRAPH)
		return "[CUDA graph]";
	return name ? name : w->kind == GPU_KERNEL ? "[kernel]" : gpu_work__operation(w);
}

const char *gpu_memory__name(u32 kind)
{
	static const char *const names[] = {
		[GPU_MEMORY_UNKNOWN] = "unknown",
		[GPU_MEMORY_PAGEABLE] = "pageable",
		[GPU_MEMORY_PINNED] = "pinned",
		[GPU_MEMORY_DEVICE] = "device",
		[GPU_MEMORY_ARRAY] = "array",
		[GPU_MEMORY_MANAGED] = "managed",
		[GPU_MEMORY_DEVICE_STATIC] = "device static",
		[GPU_MEMORY_MANAGED_STATIC] = "managed static",
	};

	return kind < ARRAY_LEN(names) ? names[kind] : names[0];
}

const char *gpu_copy__name(u32 kind)
{
	static const char *const names[] = {
		[GPU_COPY_UNKNOWN] = "unknown", [GPU_COPY_HTOD] = "HtoD", [GPU_COPY_DTOH] = "DtoH",
		[GPU_COPY_HTOA] = "HtoA",	[GPU_COPY_ATOH] = "AtoH", [GPU_COPY_ATOA] = "AtoA",
		[GPU_COPY_ATOD] = "AtoD",	[GPU_COPY_DTOA] = "DtoA", [GPU_COPY_DTOD] = "DtoD",
		[GPU_COPY_HTOH] = "HtoH",	[GPU_COPY_PTOP] = "PtoP",
	};

	return kind < ARRAY_LEN(names) ? names[kind] : names[0];
}

const char *gpu_launch__gil_state(const struct gpu_launch *l)
{
	return l->gil == GIL_HELD_YES ? "held" : l->gil == GIL_HELD_NO ? "not held" : NULL;
}

bool gpu_launches__first(struct gpu_launches *l, u64 number)
{
	if (!l->emitted)
		l->emitted = calloc(KEPT, sizeof(*l->emitted));
	/* without memory a launch may be emitted twice */
	if (!l->emitted)
		return true;
	if (l->emitted[number % KEPT] == number)
		return false;
	l->emitted[number % KEPT] = number;
	return true;
}

void gpu_launches__free(struct gpu_launches *l)
{
	free(l->emitted);
}
