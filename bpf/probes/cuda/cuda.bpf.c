// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Kernel launches, graphs, host functions, and calls in which the host waits. Signatures: cuda_runtime_api.h. */
#include "core/sonde.bpf.h"
#include "cuda.h"
#include "cuda_calls.bpf.h"
#include "cuda_stack.bpf.h"

OPTION(cuda, all, "also calls that frameworks make many times per operator and that carry no information");
OPTION(cuda, stacks, "Python stack and GIL at launches, copies, sets, allocations and waits; the driver's calls too");

struct dim3 {
	u32 x, y, z;
};

struct launch_config { /* the start of cudaLaunchConfig_t, driver_types.h */
	struct dim3 grid, block;
	u64 shared_memory, stream;
};

struct launch_params { /* cudaLaunchParams, driver_types.h */
	u64 function;
	struct dim3 grid, block;
	u64 args, shared_memory, stream;
};

static __always_inline void launch_shape(struct cuda_launch *e, const struct dim3 *grid, const struct dim3 *block)
{
	e->grid_x = grid->x;
	e->grid_y = grid->y;
	e->grid_z = grid->z;
	e->block_x = block->x;
	e->block_y = block->y;
	e->block_z = block->z;
}

/*
 * cudaLaunchKernel(func, gridDim, blockDim, args, sharedMem, stream): a dim3 by value takes two registers. nvcc's
 * stubs call __cudaLaunchKernel, which jumps to cudaLaunchKernel and needs no probe.
 */
static __always_inline void launch_by_registers(struct pt_regs *ctx, struct cuda_launch *e)
{
	u64 s[2] = {};

	e->function = ARG1(ctx);
	e->grid_x = (u32)ARG2(ctx);
	e->grid_y = ARG2(ctx) >> 32;
	e->grid_z = (u32)ARG3(ctx);
	e->block_x = (u32)ARG4(ctx);
	e->block_y = ARG4(ctx) >> 32;
	e->block_z = (u32)ARG5(ctx);
	bpf_probe_read_user(s, sizeof(s), (const void *)(ctx->sp + 8));
	e->shared_memory = s[0];
	e->stream = s[1];
}

/* cudaLaunchKernelExC(config, func, args), cudaLaunchCooperativeKernelMultiDevice(launchParamsList, n, flags) */
CUDA_CALL(cuda_launch,
	  "cudaLaunchKernel,cudaLaunchKernel_ptsz,cudaLaunchCooperativeKernel,cudaLaunchCooperativeKernel_ptsz;"
	  "cudaLaunchKernelExC,cudaLaunchKernelExC_ptsz;"
	  "cudaLaunchCooperativeKernelMultiDevice",
	  cuda_launch)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);
	struct launch_config c = {};
	struct launch_params p = {};

	barrier_var(first);
	barrier_var(second);
	if (group == 0) {
		launch_by_registers(ctx, e);
	} else if (group == 1) {
		bpf_probe_read_user(&c, sizeof(c), (const void *)first);
		e->function = second;
		e->shared_memory = c.shared_memory;
		e->stream = c.stream;
		launch_shape(e, &c.grid, &c.block);
	} else {
		bpf_probe_read_user(&p, sizeof(p), (const void *)first);
		e->function = p.function;
		e->shared_memory = p.shared_memory;
		e->stream = p.stream;
		launch_shape(e, &p.grid, &p.block);
	}
}

/* cudaLaunchHostFunc(stream, fn, userData), cudaStreamAddCallback(stream, callback, userData, flags) */
SPAN(cuda_host_func,
     "libcudart.so:"
     "cudaLaunchHostFunc,cudaLaunchHostFunc_ptsz,cudaLaunchHostFunc_v2,cudaLaunchHostFunc_v2_ptsz,"
     "cudaStreamAddCallback,cudaStreamAddCallback_ptsz",
     cuda_host_func)
{
	e->stream = ARG1(ctx);
	e->function = ARG2(ctx);
	e->data = ARG3(ctx);
}

CUDA_CALL(cuda_graph_launch, "cudaGraphLaunch,cudaGraphLaunch_ptsz,cudaGraphUpload,cudaGraphUpload_ptsz",
	  cuda_graph_launch)
{
	e->exec = ARG1(ctx);
	e->stream = ARG2(ctx);
}

CUDA_GRAPH_RETURN(cuda_graph)

/* cudaGraphInstantiate*(exec *, graph, ...), cudaGraphExecUpdate(exec, graph, ...), cudaGraphCreate(graph *, flags) */
SPAN_EXIT(cuda_graph,
	  "libcudart.so:"
	  "cudaGraphInstantiate,cudaGraphInstantiateWithFlags,cudaGraphInstantiateWithParams,"
	  "cudaGraphInstantiateWithParams_ptsz;"
	  "cudaGraphExecUpdate;"
	  "cudaGraphExecDestroy;"
	  "cudaGraphDestroy;"
	  "cudaGraphCreate,cudaGraphClone",
	  cuda_graph, graph_return)
{
	CUDA_GRAPH(ctx, e, group);
}

CUDA_HANDLE_RETURN(capture_return, cuda_capture, graph)

/*
 * cudaStreamBeginCapture(stream, mode), cudaStreamBeginRecaptureToGraph(stream, mode, graph, ...),
 * cudaStreamBeginCaptureToGraph(stream, graph, dependencies, data, n, mode), cudaStreamEndCapture(stream, graph *)
 */
SPAN_EXIT(cuda_capture,
	  "libcudart.so:"
	  "cudaStreamBeginCapture,cudaStreamBeginCapture_ptsz;"
	  "cudaStreamBeginRecaptureToGraph,cudaStreamBeginRecaptureToGraph_ptsz;"
	  "cudaStreamBeginCaptureToGraph,cudaStreamBeginCaptureToGraph_ptsz;"
	  "cudaStreamEndCapture,cudaStreamEndCapture_ptsz",
	  cuda_capture, capture_return)
{
	struct args a = args__read(ctx);

	e->stream = a.a1;
	SPAN_OUT(e) = group == 3 ? a.a2 : 0;
	if (group <= 1)
		e->mode = a.a2;
	if (group == 1)
		e->graph = a.a3;
	if (group == 2) {
		e->graph = a.a2;
		e->mode = a.a6;
	}
}

/* The number of the group is the value of `scope`. */
CUDA_CALL(cuda_sync,
	  "cudaDeviceSynchronize,cudaThreadSynchronize;"
	  "cudaStreamSynchronize,cudaStreamSynchronize_ptsz;"
	  "cudaEventSynchronize;"
	  "cudaExecutionCtxSynchronize",
	  cuda_sync)
{
	e->scope = group;
	if (group)
		e->handle = ARG1(ctx);
}

SPAN(cuda_stream_wait, "libcudart.so:cudaStreamWaitEvent,cudaStreamWaitEvent_ptsz", cuda_stream_wait)
{
	e->stream = ARG1(ctx);
	e->event_handle = ARG2(ctx);
	e->api_flags = ARG3(ctx);
}

/* cudaEventRecord(event, stream), cudaEventRecordWithFlags(event, stream, flags) */
SPAN(cuda_event_record,
     "libcudart.so:"
     "cudaEventRecord,cudaEventRecord_ptsz;"
     "cudaEventRecordWithFlags,cudaEventRecordWithFlags_ptsz",
     cuda_event_record)
{
	e->event_handle = ARG1(ctx);
	e->stream = ARG2(ctx);
	if (group == 1)
		e->api_flags = ARG3(ctx);
}

CUDA_ELAPSED_RETURN(cuda_event_elapsed)

/* cudaEventElapsedTime(float *ms, start, end) */
SPAN_EXIT(cuda_event_elapsed, "libcudart.so:cudaEventElapsedTime,cudaEventElapsedTime_v2", cuda_event_elapsed,
	  elapsed_return)
{
	SPAN_OUT(e) = ARG1(ctx);
	e->from_event = ARG2(ctx);
	e->to_event = ARG3(ctx);
}

CUDA_HANDLE_RETURN(stream_return, cuda_stream, stream)

/* cudaStreamCreate(stream *), ...WithFlags(stream *, flags), ...WithPriority(stream *, flags, priority) */
SPAN_EXIT(cuda_stream,
	  "libcudart.so:"
	  "cudaStreamDestroy;"
	  "cudaStreamCreate;"
	  "cudaStreamCreateWithFlags;"
	  "cudaStreamCreateWithPriority",
	  cuda_stream, stream_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group ? a.a1 : 0;
	if (!group)
		e->stream = a.a1;
	if (group >= 2)
		e->api_flags = a.a2;
	if (group == 3)
		e->priority = a.a3;
}

CUDA_HANDLE_RETURN(event_return, cuda_event, event_handle)

/* cudaEventCreate(event *), cudaEventCreateWithFlags(event *, flags) */
SPAN_EXIT_IF(all, cuda_event,
	     "libcudart.so:"
	     "cudaEventQuery,cudaEventDestroy;"
	     "cudaEventCreate;"
	     "cudaEventCreateWithFlags",
	     cuda_event, event_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group ? a.a1 : 0;
	if (!group)
		e->event_handle = a.a1;
	if (group == 2)
		e->api_flags = a.a2;
}

/*
 * All other functions, by globs. The globs must not match a function that another program names, because the call
 * would be recorded twice, nor cudaGetErrorName and the like, which do not return a cudaError_t.
 * tests/probes/cuda/test_names.py checks both.
 */
SPAN_IF(all, cuda_call,
	"libcudart.so:"
	"cudaArray*,cudaBind*,cudaChoose*,cudaCreate[ST]*,cudaCtx*,cudaDestroy*,"
	"cudaDevResource*,cudaDevSm*,cudaDevice[!S]*,cudaDeviceSet*,cudaDriver*,cudaEGL*,"
	"cudaExecutionCtx[!S]*,cudaExecutionCtxStream*,cudaExternal*,cudaFunc*,cudaGL*,"
	"cudaGet[!E]*,cudaGraphAdd*,cudaGraphChild*,cudaGraphConditional*,cudaGraphDebug*,"
	"cudaGraphDestroyNode,cudaGraphEvent*,cudaGraphExec[!DU]*,cudaGraphExternal*,"
	"cudaGraphGet*,cudaGraphHost*,cudaGraphKernel*,cudaGraphMem*,cudaGraphNode*,"
	"cudaGraphRe*,cudaGraphics*,cudaGreen*,cudaHostGet*,cudaImport*,cudaInit*,cudaIpc*,"
	"cudaKernel*,cudaLibrary*,cudaLogs*,cudaMemAdvise*,cudaMemDiscard*,cudaMemGet*,"
	"cudaMemPool[!CDT]*,cudaMemPrefetchBatch*,cudaMemRange*,cudaMemSet*,cudaMipmapped*,"
	"cudaOccupancy*,cudaPeek*,cudaPointer*,cudaProfiler*,cudaRuntime*,cudaSet*,"
	"cudaSignal*,cudaStreamAttach*,cudaStreamCopy*,cudaStreamGet*,cudaStreamIs*,"
	"cudaStreamQuery*,cudaStreamSet*,cudaStreamUpdate*,cudaSubgrid*,cudaThread[!S]*,"
	"cudaThreadSet*,cudaUnbind*,cudaUserObject*,cudaVDPAU*,cudaWait*",
	cuda_call)
{
}
