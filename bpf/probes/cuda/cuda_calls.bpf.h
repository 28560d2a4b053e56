/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Launches, graphs, host functions, streams, events, waits and memory. Copies, sets and allocations are in
 * cuda_copy.bpf.h and cuda_alloc.bpf.h. Comments state the arguments of each group of functions; their declarations are
 * in cuda_runtime_api.h and cuda.h.
 */
#pragma once

struct launch_config { /* the start of cudaLaunchConfig_t and of CUlaunchConfig */
	u32 grid[3], block[3];
	RUNTIME(u64) DRIVER(u32) shared_memory;
	u64 stream;
};

struct launch_params { /* the start of cudaLaunchParams and of CUDA_LAUNCH_PARAMS */
	u64 function;
	u32 grid[3], block[3];
	RUNTIME(u64 args;)
	RUNTIME(u64) DRIVER(u32) shared_memory;
	u64 stream;
};

static __always_inline void launch_shape(struct NAME(launch) * e, const u32 *grid, const u32 *block)
{
	e->grid_x = grid[0];
	e->grid_y = grid[1];
	e->grid_z = grid[2];
	e->block_x = block[0];
	e->block_y = block[1];
	e->block_z = block[2];
}

/* nvcc's stubs call __cudaLaunchKernel, which jumps to cudaLaunchKernel and needs no probe. */
#define LAUNCHES(GROUP)                                                                                       \
	GROUP(LAUNCH_KERNEL, FN_PTSZ(LaunchKernel) FN_PTSZ(LaunchCooperativeKernel))                          \
	GROUP(LAUNCH_EX,                                                                                      \
	      RUNTIME(FN_PTSZ(LaunchKernelExC)) DRIVER(FN_PTSZ(LaunchKernelEx))) /* (config, function, ..) */ \
	GROUP(LAUNCH_DEVICES, FN(LaunchCooperativeKernelMultiDevice)) /* (params *, n, flags) */

enum { LAUNCHES(GROUP_NUMBER) };

/* Of a launch whose arguments are not in a struct */
static __always_inline void launch_by_args(struct NAME(launch) * e, const struct args *a);

CALL_STACK(launch, LAUNCHES(GROUP_FUNCTIONS))
{
	struct args a = args__read(ctx);
	struct launch_config c = {};
	struct launch_params p = {};

	if (group == LAUNCH_EX) {
		bpf_probe_read_user(&c, sizeof(c), (const void *)a.a1);
		e->function = a.a2;
		e->shared_memory = c.shared_memory;
		e->stream = c.stream;
		launch_shape(e, c.grid, c.block);
	} else if (group == LAUNCH_DEVICES) {
		bpf_probe_read_user(&p, sizeof(p), (const void *)a.a1);
		e->function = p.function;
		e->shared_memory = p.shared_memory;
		e->stream = p.stream;
		launch_shape(e, p.grid, p.block);
	} else {
		launch_by_args(e, &a);
	}
}

/* (stream, function, data, ..) */
CALL(host_func, FN_PTSZ(LaunchHostFunc) FN_PTSZ(LaunchHostFunc_v2) FN_PTSZ(StreamAddCallback))
{
	e->stream = ARG1(ctx);
	e->function = ARG2(ctx);
	e->data = ARG3(ctx);
}

CALL_STACK(graph_launch, FN_PTSZ(GraphLaunch) FN_PTSZ(GraphUpload))
{
	e->exec = ARG1(ctx);
	e->stream = ARG2(ctx);
}

#define GRAPHS(GROUP)                                                                                               \
	GROUP(GRAPH_INSTANTIATE, FN(GraphInstantiate) DRIVER(FN(GraphInstantiate_v2)) FN(GraphInstantiateWithFlags) \
					 FN_PTSZ(GraphInstantiateWithParams)) /* (exec *, graph, ..) */             \
	GROUP(GRAPH_UPDATE, FN(GraphExecUpdate) DRIVER(FN(GraphExecUpdate_v2))) /* (exec, graph, ..) */             \
	GROUP(GRAPH_EXEC_DESTROY, FN(GraphExecDestroy))                                                             \
	GROUP(GRAPH_DESTROY, FN(GraphDestroy))                                                                      \
	GROUP(GRAPH_CREATE, FN(GraphCreate) FN(GraphClone)) /* (graph *, ..) */

enum { GRAPHS(GROUP_NUMBER) };

#define OUT_IS_GRAPH (1ULL << 63)

static __always_inline void graph_return(struct NAME(graph) * e)
{
	u64 out = SPAN_OUT(e);
	u64 v = out ? args__out(&e->call, out & ~OUT_IS_GRAPH) : 0;

	if (out & OUT_IS_GRAPH)
		e->graph = v;
	else if (out)
		e->exec = v;
}

CALL_EXIT(graph, GRAPHS(GROUP_FUNCTIONS), graph_return)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);

	barrier_var(first);
	barrier_var(second);
	SPAN_OUT(e) = group == GRAPH_INSTANTIATE ? first : group == GRAPH_CREATE ? first | OUT_IS_GRAPH : 0;
	if (group == GRAPH_INSTANTIATE || group == GRAPH_UPDATE)
		e->graph = second;
	if (group == GRAPH_UPDATE || group == GRAPH_EXEC_DESTROY)
		e->exec = first;
	if (group == GRAPH_DESTROY)
		e->graph = first;
}

#define CAPTURES(GROUP)                                                                                                \
	/* (stream, mode) */                                                                                           \
	GROUP(CAPTURE_BEGIN, RUNTIME(FN_PTSZ(StreamBeginCapture)) DRIVER(FN_PTSZ(StreamBeginCapture_v2)))              \
	GROUP(CAPTURE_AGAIN, FN_PTSZ(StreamBeginRecaptureToGraph)) /* (stream, mode, graph, ..) */                     \
	GROUP(CAPTURE_TO_GRAPH, FN_PTSZ(StreamBeginCaptureToGraph)) /* (stream, graph, dependencies, data, n, mode) */ \
	GROUP(CAPTURE_END, FN_PTSZ(StreamEndCapture)) /* (stream, graph *) */                                          \
	GROUP(CAPTURE_BEGIN_OLD, DRIVER(FN_PTSZ(StreamBeginCapture))) /* (stream), of CUDA 10.0 */

enum { CAPTURES(GROUP_NUMBER) };

HANDLE_RETURN(capture, graph)

CALL_EXIT(capture, CAPTURES(GROUP_FUNCTIONS), capture_return)
{
	struct args a = args__read(ctx);

	e->stream = a.a1;
	SPAN_OUT(e) = group == CAPTURE_END ? a.a2 : 0;
	if (group == CAPTURE_BEGIN || group == CAPTURE_AGAIN)
		e->mode = a.a2;
	if (group == CAPTURE_AGAIN)
		e->graph = a.a3;
	if (group == CAPTURE_TO_GRAPH) {
		e->graph = a.a2;
		e->mode = a.a6;
	}
}

#define SYNCS(GROUP)                                                                                     \
	GROUP(SYNC_ALL, RUNTIME(FN(DeviceSynchronize) FN(ThreadSynchronize)) DRIVER(FN(CtxSynchronize))) \
	GROUP(SYNC_STREAM, FN_PTSZ(StreamSynchronize))                                                   \
	GROUP(SYNC_EVENT, FN(EventSynchronize))                                                          \
	GROUP(SYNC_CONTEXT, RUNTIME(FN(ExecutionCtxSynchronize)) DRIVER(FN(CtxSynchronize_v2)))

enum { SYNCS(GROUP_NUMBER) };

CALL_STACK(sync, SYNCS(GROUP_FUNCTIONS))
{
	_Static_assert(SYNC_STREAM == CUDA_SYNC_STREAM && SYNC_CONTEXT == CUDA_SYNC_CONTEXT,
		       "a group's number is a scope");

	e->scope = group == SYNC_ALL ? RUNTIME(CUDA_SYNC_DEVICE) DRIVER(CUDA_SYNC_CONTEXT) : group;
	if (group != SYNC_ALL)
		e->handle = ARG1(ctx);
}

CALL(stream_wait, FN_PTSZ(StreamWaitEvent))
{
	e->stream = ARG1(ctx);
	e->event_handle = ARG2(ctx);
	e->api_flags = ARG3(ctx);
}

/* (event, stream), (event, stream, flags) */
CALL(event_record, FN_PTSZ(EventRecord) ";" FN_PTSZ(EventRecordWithFlags))
{
	e->event_handle = ARG1(ctx);
	e->stream = ARG2(ctx);
	if (group == 1)
		e->api_flags = ARG3(ctx);
}

static __always_inline void event_elapsed_return(struct NAME(event_elapsed) * e)
{
	if (!e->call.ret)
		bpf_probe_read_user(&e->elapsed_ms, sizeof(e->elapsed_ms), (void *)SPAN_OUT(e));
}

/* (float *ms, start, end) */
CALL_EXIT(event_elapsed, FN(EventElapsedTime) FN(EventElapsedTime_v2), event_elapsed_return)
{
	SPAN_OUT(e) = ARG1(ctx);
	e->from_event = ARG2(ctx);
	e->to_event = ARG3(ctx);
}

#define STREAMS(GROUP)                                                                                \
	GROUP(STREAM_DESTROY, FN(StreamDestroy) DRIVER(FN(StreamDestroy_v2)))                         \
	GROUP(STREAM_CREATE, RUNTIME(FN(StreamCreate))) /* (stream *) */                              \
	/* (stream *, flags) */                                                                       \
	GROUP(STREAM_CREATE_FLAGS, RUNTIME(FN(StreamCreateWithFlags)) DRIVER(FN(StreamCreate)))       \
	GROUP(STREAM_CREATE_PRIORITY, FN(StreamCreateWithPriority)) /* (stream *, flags, priority) */ \
	GROUP(STREAM_CREATE_GREEN, DRIVER(FN(GreenCtxStreamCreate))) /* (stream *, context, flags, priority) */

enum { STREAMS(GROUP_NUMBER) };

HANDLE_RETURN(stream, stream)

CALL_EXIT(stream, STREAMS(GROUP_FUNCTIONS), stream_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group == STREAM_DESTROY ? 0 : a.a1;
	if (group == STREAM_DESTROY)
		e->stream = a.a1;
	if (group >= STREAM_CREATE_FLAGS)
		e->api_flags = group == STREAM_CREATE_GREEN ? a.a3 : a.a2;
	if (group >= STREAM_CREATE_PRIORITY)
		e->priority = group == STREAM_CREATE_GREEN ? a.a4 : a.a3;
}

#define EVENTS(GROUP)                                                                 \
	GROUP(EVENT_USE, FN(EventQuery) FN(EventDestroy) DRIVER(FN(EventDestroy_v2))) \
	GROUP(EVENT_CREATE, RUNTIME(FN(EventCreate))) /* (event *) */                 \
	GROUP(EVENT_CREATE_FLAGS, RUNTIME(FN(EventCreateWithFlags)) DRIVER(FN(EventCreate))) /* (event *, flags) */

enum { EVENTS(GROUP_NUMBER) };

HANDLE_RETURN(event, event_handle)

CALL_EXIT_IF_ALL(event, EVENTS(GROUP_FUNCTIONS), event_return)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);

	barrier_var(first);
	barrier_var(second);
	SPAN_OUT(e) = group == EVENT_USE ? 0 : first;
	if (group == EVENT_USE)
		e->event_handle = first;
	if (group == EVENT_CREATE_FLAGS)
		e->api_flags = second;
}

#define FREES(GROUP)                                                                                            \
	GROUP(FREE_DEVICE, RUNTIME(FN(Free)) DRIVER(FN(MemFree) FN(MemFree_v2)))                                \
	GROUP(FREE_HOST, RUNTIME(FN(FreeHost)) DRIVER(FN(MemFreeHost)))                                         \
	GROUP(FREE_ASYNC, RUNTIME(FN_PTSZ(FreeAsync)) DRIVER(FN_PTSZ(MemFreeAsync))) /* (address, stream) */    \
	GROUP(FREE_ARRAY,                                                                                       \
	      RUNTIME(FN(FreeArray) FN(FreeMipmappedArray)) DRIVER(FN(ArrayDestroy) FN(MipmappedArrayDestroy))) \
	GROUP(FREE_PHYSICAL, DRIVER(FN(MemRelease)))

enum { FREES(GROUP_NUMBER) };

CALL_STACK(free, FREES(GROUP_FUNCTIONS))
{
	u64 stream = ARG2(ctx);

	barrier_var(stream);
	e->address = ARG1(ctx);
	e->stream = group == FREE_ASYNC ? stream : 0;
	e->memory = group == FREE_DEVICE ? CUDA_MEMORY_DEVICE :
		    group == FREE_HOST	 ? CUDA_MEMORY_HOST :
		    group == FREE_ASYNC	 ? CUDA_MEMORY_POOL :
		    group == FREE_ARRAY	 ? CUDA_MEMORY_ARRAY :
					   CUDA_MEMORY_PHYSICAL;
}

#define HOST_REGISTERS(GROUP)                                                                              \
	/* (address, bytes, flags) */                                                                      \
	GROUP(HOST_REGISTER, RUNTIME(FN(HostRegister)) DRIVER(FN(MemHostRegister) FN(MemHostRegister_v2))) \
	GROUP(HOST_UNREGISTER, RUNTIME(FN(HostUnregister)) DRIVER(FN(MemHostUnregister)))

enum { HOST_REGISTERS(GROUP_NUMBER) };

CALL(host_register, HOST_REGISTERS(GROUP_FUNCTIONS))
{
	e->address = ARG1(ctx);
	if (group == HOST_REGISTER) {
		e->bytes = ARG2(ctx);
		e->api_flags = ARG3(ctx);
	}
}

HANDLE_RETURN(pool, pool)

/* (pool), (pool, bytes), (pool *, properties) */
CALL_EXIT(pool, FN(MemPoolDestroy) ";" FN(MemPoolTrimTo) ";" FN(MemPoolCreate), pool_return)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);

	barrier_var(first);
	barrier_var(second);
	SPAN_OUT(e) = group == 2 ? first : 0;
	if (group < 2)
		e->pool = first;
	if (group == 1)
		e->bytes = second;
}

/* (address, bytes, ..): the position of the destination and the stream differs between the versions. */
CALL(prefetch, FN_PTSZ(MemPrefetchAsync) FN_PTSZ(MemPrefetchAsync_v2))
{
	e->address = ARG1(ctx);
	e->bytes = ARG2(ctx);
}

/* The position of the stream differs between CUDA 12 and 13. */
#define BATCHES(GROUP)                                                                                                \
	/* (destinations, sources, sizes, n, ..) */                                                                   \
	GROUP(BATCH_1D, FN_PTSZ(MemcpyBatchAsync) DRIVER(FN_PTSZ(MemcpyBatchAsync_v2)))                               \
	GROUP(BATCH_3D, FN_PTSZ(Memcpy3DBatchAsync) DRIVER(FN_PTSZ(Memcpy3DBatchAsync_v2))) /* (n, operations, ..) */ \
	GROUP(BATCH_OF_ONE, FN_PTSZ(Memcpy3DWithAttributesAsync)) /* (operation, flags, stream) */

enum { BATCHES(GROUP_NUMBER) };

CALL(copy_batch, BATCHES(GROUP_FUNCTIONS))
{
	struct args a = args__read(ctx);

	e->copies = group == BATCH_1D ? a.a4 : group == BATCH_3D ? a.a1 : 1;
	if (group == BATCH_1D)
		e->bytes = args__sum(a.a3, a.a4);
}
