// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Kernel launches, graphs, host functions, and calls in which the host waits. Signatures: cuda.h. */
#include "cudadrv.bpf.h"

OPTION(cudadrv, all, "also calls that frameworks make many times per operator and that carry no information");
OPTION(cudadrv, nested, "also driver calls that are made within calls of the runtime or the driver");
OPTION(cudadrv, stacks,
       "Python stack and GIL at launches, copies, sets, allocations and waits that are calls of the driver");

struct launch_config { /* the start of CUlaunchConfig */
	u32 grid[3], block[3];
	u32 shared_memory;
	u64 stream;
};

struct launch_params { /* the start of CUDA_LAUNCH_PARAMS */
	u64 function;
	u32 grid[3], block[3];
	u32 shared_memory;
	u64 stream;
};

static __always_inline void launch_shape(struct cudadrv_launch *e, const u32 *grid, const u32 *block)
{
	e->grid_x = grid[0];
	e->grid_y = grid[1];
	e->grid_z = grid[2];
	e->block_x = block[0];
	e->block_y = block[1];
	e->block_z = block[2];
}

/*
 * cuLaunchKernel(f, grid x, y, z, block x, y, z, sharedMemBytes, stream, ..): the arguments from the seventh on are
 * on the stack.
 */
static __always_inline void launch_by_registers(const struct args *a, struct cudadrv_launch *e)
{
	u64 s[3] = {};

	bpf_probe_read_user(s, sizeof(s), (const void *)(a->sp + 8));
	e->function = a->a1;
	e->grid_x = a->a2;
	e->grid_y = a->a3;
	e->grid_z = a->a4;
	e->block_x = a->a5;
	e->block_y = a->a6;
	e->block_z = s[0];
	e->shared_memory = (u32)s[1];
	e->stream = s[2];
}

enum {
	LAUNCH_KERNEL,
	LAUNCH_EX,
	LAUNCH_DEVICES,
	LAUNCH_GRID, /* of CUDA 3: an earlier call has set the shape of the block */
	LAUNCH_GRID_ASYNC,
	LAUNCH,
};

/* cuLaunchKernelEx(config, f, ..), cuLaunchCooperativeKernelMultiDevice(params *, n, flags), cuLaunchGrid(f, w, h) */
DRIVER_STACK(cudadrv_launch,
	     "cuLaunchKernel,cuLaunchKernel_ptsz,cuLaunchCooperativeKernel,cuLaunchCooperativeKernel_ptsz;"
	     "cuLaunchKernelEx,cuLaunchKernelEx_ptsz;"
	     "cuLaunchCooperativeKernelMultiDevice;"
	     "cuLaunchGrid;"
	     "cuLaunchGridAsync;"
	     "cuLaunch",
	     cudadrv_launch)
{
	struct args a = args__read(ctx);
	struct launch_config c = {};
	struct launch_params p = {};

	if (group == LAUNCH_KERNEL) {
		launch_by_registers(&a, e);
	} else if (group == LAUNCH_EX) {
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
		e->function = a.a1;
		e->grid_x = group == LAUNCH ? 1 : (u32)a.a2;
		e->grid_y = group == LAUNCH ? 1 : (u32)a.a3;
		e->grid_z = 1;
		e->stream = group == LAUNCH_GRID_ASYNC ? a.a4 : 0;
	}
}

/* cuLaunchHostFunc(stream, fn, userData), cuStreamAddCallback(stream, callback, userData, flags) */
DRIVER(cudadrv_host_func,
       "cuLaunchHostFunc,cuLaunchHostFunc_ptsz,cuLaunchHostFunc_v2,cuLaunchHostFunc_v2_ptsz,"
       "cuStreamAddCallback,cuStreamAddCallback_ptsz",
       cudadrv_host_func)
{
	e->stream = ARG1(ctx);
	e->function = ARG2(ctx);
	e->data = ARG3(ctx);
}

DRIVER_STACK(cudadrv_graph_launch, "cuGraphLaunch,cuGraphLaunch_ptsz,cuGraphUpload,cuGraphUpload_ptsz",
	     cudadrv_graph_launch)
{
	e->exec = ARG1(ctx);
	e->stream = ARG2(ctx);
}

CUDA_GRAPH_RETURN(cudadrv_graph)

/* cuGraphInstantiate*(exec *, graph, ...), cuGraphExecUpdate(exec, graph, ...), cuGraphCreate(graph *, flags) */
DRIVER_EXIT(cudadrv_graph,
	    "cuGraphInstantiate,cuGraphInstantiate_v2,cuGraphInstantiateWithFlags,cuGraphInstantiateWithParams,"
	    "cuGraphInstantiateWithParams_ptsz;"
	    "cuGraphExecUpdate,cuGraphExecUpdate_v2;"
	    "cuGraphExecDestroy;"
	    "cuGraphDestroy;"
	    "cuGraphCreate,cuGraphClone",
	    cudadrv_graph, graph_return)
{
	CUDA_GRAPH(ctx, e, group);
}

enum {
	CAPTURE_BEGIN_OLD, /* CUDA 10.0 has no mode */
	CAPTURE_BEGIN,
	CAPTURE_AGAIN,
	CAPTURE_TO_GRAPH,
	CAPTURE_END,
};

CUDA_HANDLE_RETURN(capture_return, cudadrv_capture, graph)

/*
 * cuStreamBeginCapture_v2(stream, mode), cuStreamBeginRecaptureToGraph(stream, mode, graph, ...),
 * cuStreamBeginCaptureToGraph(stream, graph, dependencies, data, n, mode), cuStreamEndCapture(stream, graph *)
 */
DRIVER_EXIT(cudadrv_capture,
	    "cuStreamBeginCapture,cuStreamBeginCapture_ptsz;"
	    "cuStreamBeginCapture_v2,cuStreamBeginCapture_v2_ptsz;"
	    "cuStreamBeginRecaptureToGraph,cuStreamBeginRecaptureToGraph_ptsz;"
	    "cuStreamBeginCaptureToGraph,cuStreamBeginCaptureToGraph_ptsz;"
	    "cuStreamEndCapture,cuStreamEndCapture_ptsz",
	    cudadrv_capture, capture_return)
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

/* cuCtxSynchronize() has no arguments */
DRIVER_STACK(cudadrv_sync,
	     "cuStreamSynchronize,cuStreamSynchronize_ptsz;"
	     "cuEventSynchronize;"
	     "cuCtxSynchronize_v2;"
	     "cuCtxSynchronize",
	     cudadrv_sync)
{
	e->scope = group == 0 ? CUDA_SYNC_STREAM : group == 1 ? CUDA_SYNC_EVENT : CUDA_SYNC_CONTEXT;
	if (group <= 2)
		e->handle = ARG1(ctx);
}

DRIVER(cudadrv_stream_wait, "cuStreamWaitEvent,cuStreamWaitEvent_ptsz", cudadrv_stream_wait)
{
	e->stream = ARG1(ctx);
	e->event_handle = ARG2(ctx);
	e->api_flags = ARG3(ctx);
}

/* cuEventRecord(event, stream), cuEventRecordWithFlags(event, stream, flags) */
DRIVER(cudadrv_event_record,
       "cuEventRecord,cuEventRecord_ptsz;"
       "cuEventRecordWithFlags,cuEventRecordWithFlags_ptsz",
       cudadrv_event_record)
{
	e->event_handle = ARG1(ctx);
	e->stream = ARG2(ctx);
	if (group == 1)
		e->api_flags = ARG3(ctx);
}

CUDA_ELAPSED_RETURN(cudadrv_event_elapsed)

/* cuEventElapsedTime(float *ms, start, end) */
DRIVER_EXIT(cudadrv_event_elapsed, "cuEventElapsedTime,cuEventElapsedTime_v2", cudadrv_event_elapsed, elapsed_return)
{
	SPAN_OUT(e) = ARG1(ctx);
	e->from_event = ARG2(ctx);
	e->to_event = ARG3(ctx);
}

enum {
	STREAM_DESTROY,
	STREAM_CREATE,
	STREAM_CREATE_PRIORITY,
	STREAM_CREATE_GREEN,
};

CUDA_HANDLE_RETURN(stream_return, cudadrv_stream, stream)

/*
 * cuStreamCreate(stream *, flags), ...WithPriority(stream *, flags, priority), cuGreenCtx...(stream *, context, flags,
 * priority)
 */
DRIVER_EXIT(cudadrv_stream,
	    "cuStreamDestroy,cuStreamDestroy_v2;"
	    "cuStreamCreate;"
	    "cuStreamCreateWithPriority;"
	    "cuGreenCtxStreamCreate",
	    cudadrv_stream, stream_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group == STREAM_DESTROY ? 0 : a.a1;
	if (group == STREAM_DESTROY)
		e->stream = a.a1;
	else
		e->api_flags = group == STREAM_CREATE_GREEN ? a.a3 : a.a2;
	if (group == STREAM_CREATE_PRIORITY)
		e->priority = a.a3;
	if (group == STREAM_CREATE_GREEN)
		e->priority = a.a4;
}

CUDA_HANDLE_RETURN(event_return, cudadrv_event, event_handle)

/* cuEventCreate(event *, flags) */
DRIVER_EXIT_IF(all, cudadrv_event, "cuEventQuery,cuEventDestroy,cuEventDestroy_v2;cuEventCreate", cudadrv_event,
	       event_return)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);

	barrier_var(first);
	barrier_var(second);
	SPAN_OUT(e) = group ? first : 0;
	if (group)
		e->api_flags = second;
	else
		e->event_handle = first;
}

/*
 * All functions that no other program names. libcuda's functions with other names, such as cudbgGetAPI, are not part
 * of the API.
 */
DRIVER_IF(all, cudadrv_call, "cu[A-Z]*", cudadrv_call)
{
}
