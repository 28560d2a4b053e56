// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver's double. The current context is a thread's: one of machine.contexts. */
#define _GNU_SOURCE
#include "device.h"

#include <cuda.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread uint32_t current;

/* A call is reported to the tool when it has ended: during it, its correlation id is visible to all. */
struct call {
	uint32_t correlation, cbid;
	uint64_t start;
};

static struct call enter(uint32_t cbid)
{
	struct call c = { .correlation = fake__enter(), .cbid = cbid, .start = fake__now() };

	pthread_mutex_lock(&machine.lock);
	return c;
}

static CUresult leave(const struct call *c, CUresult result)
{
	machine__tell(&(struct fake_record){ .op = FAKE_CALL,
					     .start = c->start,
					     .end = fake__now(),
					     .tid = fake__tid(),
					     .correlation = c->correlation,
					     .kind = c->cbid,
					     .result = result,
					     .nested = machine__is_in_runtime() });
	pthread_mutex_unlock(&machine.lock);
	fake__leave();
	return result;
}

static struct stream *stream_of(CUstream s)
{
	return s && (uintptr_t)s > 2 ? (struct stream *)s : machine__null_stream(current);
}

/* What libcuda does with CUDA_INJECTION64_PATH: once, within the first cuInit. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*fn)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;

	if (path && !library)
		fprintf(stderr, "%s\n", dlerror());
	if (fn)
		fn();
}

CUresult cuInit(unsigned int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (machine.broken)
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_once(&once, inject);
	machine__wait_until(fake__now() + fake__setting("FAKE_CUDA", "init_ms", 0) * 1000000);
	pthread_mutex_lock(&machine.lock);
	machine__init();
	pthread_mutex_unlock(&machine.lock);
	return machine.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = machine.devices;
	return machine.devices_known ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* Not CUDA's: libcudart keeps the current device in the driver. */
CUresult fake__set_device(uint32_t device)
{
	if (device >= machine.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	current = device;
	return CUDA_SUCCESS;
}

uint32_t fake__device(void)
{
	return current < DEVICES_MAX ? current : machine.contexts[current].device;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	current = context ? (struct context *)context - machine.contexts : 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	*out = (CUcontext)&machine.contexts[current];
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&machine.lock);
	if (DEVICES_MAX + machine.created < CONTEXTS_MAX) {
		current = DEVICES_MAX + machine.created++;
		machine.contexts[current].device = device;
		machine__context(current);
		*out = (CUcontext)&machine.contexts[current];
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&machine.lock);
	return result;
}

/* Waits for all that is in it, so that the truth is the truth. */
static CUresult destroy(uint32_t context)
{
	uint64_t until;

	pthread_mutex_lock(&machine.lock);
	until = machine__busy_until(context);
	pthread_mutex_unlock(&machine.lock);
	machine__wait_until(until);
	pthread_mutex_lock(&machine.lock);
	machine__destroy(context);
	pthread_mutex_unlock(&machine.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	uint32_t number = (struct context *)context - machine.contexts;

	current = fake__device();
	return destroy(number);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return device >= 0 && (uint32_t)device < machine.devices ? destroy(device) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	pthread_mutex_lock(&machine.lock);
	*out = (CUstream)machine__new_stream(current);
	pthread_mutex_unlock(&machine.lock);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra)
{
	struct stream *stream = stream_of(s);
	struct call c;
	const struct fake_kernel *k = (const struct fake_kernel *)f;
	struct fake_record r = {
		.op = FAKE_KERNEL, .tid = fake__tid(), .grid = { gx, gy, gz }, .block = { bx, by, bz }, .shared = shared
	};

	machine__settle(stream);
	c = enter(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	r.correlation = c.correlation;
	if (!k || !k->name || !gx || !bx)
		return leave(&c, CUDA_ERROR_INVALID_VALUE);
	r.name = k->name;
	if (k->ns == FAKE_WAITS)
		machine__enqueue_waiting(stream, &r, k);
	else
		machine__enqueue(stream, &r, kernel__ns(k, params));
	return leave(&c, CUDA_SUCCESS);
}

static CUresult copy(uint32_t cbid, uint32_t kind, uint64_t address, size_t bytes, CUstream s, bool asynchronous)
{
	/* CUpti_ActivityMemoryKind: 1 pageable, 3 device */
	struct call c = enter(cbid);
	struct fake_record r = { .op = FAKE_COPY,
				 .tid = fake__tid(),
				 .correlation = c.correlation,
				 .bytes = bytes,
				 .address = address,
				 .kind = kind,
				 .from_memory = kind == 1 ? 1 : 3,
				 .to_memory = kind == 2 ? 1 : 3,
				 .asynchronous = asynchronous };

	machine__enqueue(stream_of(s), &r, bytes / machine.gbps);
	if (!asynchronous) {
		pthread_mutex_unlock(&machine.lock);
		machine__wait_until(r.end);
		pthread_mutex_lock(&machine.lock);
	}
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
	return copy(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, 1, dst, bytes, s, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	return copy(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, 2, src, bytes, s, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	return copy(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2, 8, dst, bytes, s, true);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, 1, dst, bytes, NULL, false);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, 2, src, bytes, NULL, false);
}

/* The destination's device is in the pointer: see cuMemAlloc. */
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream s)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync);
	struct fake_record r = { .op = FAKE_COPY,
				 .tid = fake__tid(),
				 .correlation = c.correlation,
				 .bytes = bytes,
				 .kind = 10,
				 .from_memory = 3,
				 .to_memory = 3,
				 .peer = 1 + (uint32_t)(dst >> 40),
				 .asynchronous = 1 };

	machine__enqueue(stream_of(s), &r, bytes / machine.gbps);
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream s)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
	struct fake_record r = { .op = FAKE_SET,
				 .tid = fake__tid(),
				 .correlation = c.correlation,
				 .bytes = n,
				 .address = dst,
				 .kind = value,
				 .asynchronous = 1 };

	machine__enqueue(stream_of(s), &r, n / machine.set_gbps);
	return leave(&c, CUDA_SUCCESS);
}

static void tell_memory(const struct call *c, uint32_t kind, uint64_t address, uint64_t bytes)
{
	machine__tell(&(struct fake_record){ .op = FAKE_MEMORY,
					     .start = fake__now(),
					     .tid = fake__tid(),
					     .correlation = c->correlation,
					     .device = fake__device(),
					     .context = machine__context(current)->id,
					     .bytes = bytes,
					     .address = address,
					     .kind = kind });
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);

	machine__null_stream(current);
	if (bytes > 1ULL << 38)
		return leave(&c, CUDA_ERROR_OUT_OF_MEMORY);
	machine.memory += 1 << 12;
	*out = ((uint64_t)fake__device() << 40) + 0x7000000 + machine.memory;
	tell_memory(&c, 1, *out, bytes);
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2);

	tell_memory(&c, 2, address, 0);
	return leave(&c, CUDA_SUCCESS);
}

/* CUpti_ActivitySynchronizationType */
static void synchronize(const struct call *c, uint32_t kind, struct stream *s, uint64_t until)
{
	uint64_t start = fake__now();

	pthread_mutex_unlock(&machine.lock);
	machine__wait_until(until);
	pthread_mutex_lock(&machine.lock);
	machine__tell(&(struct fake_record){ .op = FAKE_SYNC,
					     .start = start,
					     .end = fake__now(),
					     .tid = fake__tid(),
					     .correlation = c->correlation,
					     .device = s->device,
					     .context = machine.contexts[s->owner].id,
					     .stream = kind == 4 ? 0xffffffff : s->id,
					     .kind = kind });
}

CUresult cuStreamSynchronize(CUstream s)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);

	pthread_mutex_unlock(&machine.lock);
	machine__settle(stream_of(s));
	pthread_mutex_lock(&machine.lock);
	synchronize(&c, 3, stream_of(s), stream_of(s)->available);
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize);

	synchronize(&c, 4, machine__null_stream(current), machine__busy_until(current));
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct event *e = calloc(1, sizeof(*e));

	pthread_mutex_lock(&machine.lock);
	e->id = ++machine.events;
	pthread_mutex_unlock(&machine.lock);
	*out = (CUevent)e;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream s)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuEventRecord);
	uint64_t now = fake__now();

	((struct event *)event)->at = stream_of(s)->available > now ? stream_of(s)->available : now;
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent event)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize);

	synchronize(&c, 1, machine__null_stream(current), ((struct event *)event)->at);
	return leave(&c, CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned int flags)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent);
	uint64_t at = ((struct event *)event)->at;

	if (stream_of(s)->available < at)
		stream_of(s)->available = at;
	synchronize(&c, 2, stream_of(s), 0);
	return leave(&c, CUDA_SUCCESS);
}

/* A graph is a row of nodes here. */
CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	*out = calloc(1, sizeof(struct graph));
	return CUDA_SUCCESS;
}

static CUresult add_node(CUgraph graph, struct graph_node node, CUgraphNode *out)
{
	struct graph *g = (struct graph *)graph;
	struct graph_node *bigger = realloc(g->nodes, (g->n + 1) * sizeof(*bigger));

	if (!bigger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&machine.lock);
	node.id = ++machine.nodes;
	pthread_mutex_unlock(&machine.lock);
	g->nodes = bigger;
	g->nodes[g->n++] = node;
	*out = (CUgraphNode)node.id;
	return CUDA_SUCCESS;
}

/* Not CUDA's: the parameters' structs say nothing that the double needs. */
CUresult fake__add_kernel_node(CUgraph graph, const struct fake_kernel *k, CUgraphNode *out)
{
	return add_node(graph, (struct graph_node){ .op = FAKE_KERNEL, .kernel = k }, out);
}

CUresult fake__add_set_node(CUgraph graph, size_t bytes, CUgraphNode *out)
{
	return add_node(graph, (struct graph_node){ .op = FAKE_SET, .bytes = bytes }, out);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	struct graph *g = malloc(sizeof(*g));

	*g = *(struct graph *)graph;
	pthread_mutex_lock(&machine.lock);
	g->id = ++machine.graphs;
	pthread_mutex_unlock(&machine.lock);
	*out = (CUgraphExec)g;
	return CUDA_SUCCESS;
}

uint32_t fake__graphs(void)
{
	uint32_t n;

	pthread_mutex_lock(&machine.lock);
	n = machine.graphs;
	pthread_mutex_unlock(&machine.lock);
	return n;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream s)
{
	struct call c = enter(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
	const struct graph *g = (const struct graph *)exec;
	struct stream *in = stream_of(s);
	uint64_t start = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct graph_node *n = &g->nodes[i];
		struct fake_record r = { .op = n->op,
					 .tid = fake__tid(),
					 .correlation = c.correlation,
					 .name = n->kernel ? n->kernel->name : NULL,
					 .grid = { 1, 1, 1 },
					 .block = { 32, 1, 1 },
					 .bytes = n->bytes,
					 .graph = g->id,
					 .node = n->id };

		machine__enqueue(in, &r, n->kernel ? n->kernel->ns : n->bytes / machine.set_gbps);
		if (!start)
			start = r.start;
	}
	machine__tell(&(struct fake_record){ .op = FAKE_GRAPH,
					     .start = start,
					     .end = in->available,
					     .tid = fake__tid(),
					     .correlation = c.correlation,
					     .device = in->device,
					     .context = machine.contexts[in->owner].id,
					     .stream = in->id,
					     .graph = g->id });
	return leave(&c, CUDA_SUCCESS);
}
