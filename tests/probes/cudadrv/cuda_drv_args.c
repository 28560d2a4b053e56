// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls functions of a libcuda that does nothing (tests/fakes/libcuda.c), with the types of NVIDIA's header and
 * different arguments, and writes the expected event of each call, one line per call: `FUNCTION EVENT RETURNED
 * FIELD=VALUE ..`.
 *
 *	cuda_drv_args LIBRARY FILE	prints "ready", waits for a line, calls, writes
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes the header declare each version of a function under its own name */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

static FILE *out;
static void *library;

#define H(n) ((unsigned long long)(n))
#define P(n) ((void *)(uintptr_t)(n))
#define S    ((CUstream)P(0x5100))
#define E    ((CUevent)P(0xe100))
#define A    ((CUarray)P(0xa100))
#define B    ((CUarray)P(0xa200))
#define G    ((CUgraph)P(0x9100))
#define X    ((CUgraphExec)P(0x9200))
#define POOL ((CUmemoryPool)P(0x9300))
#define C    ((CUcontext)P(0xcc00))
#define F    ((CUfunction)P(0xf000))
#define DST  ((CUdeviceptr)0xd000)
#define SRC  ((CUdeviceptr)0xc000)

static void *find(const char *name)
{
	void *p = dlsym(library, name);

	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return p;
}

#define CALL(event, function, args, ...)                                 \
	do {                                                             \
		int r_ = ((__typeof__(function) *)find(#function))args;  \
		fprintf(out, "%s cudadrv_%s %d ", #function, event, r_); \
		fprintf(out, __VA_ARGS__);                               \
		fputc('\n', out);                                        \
	} while (0)

#define COPY(function, args, n, d, s, k, st) \
	CALL("copy", function, args, "bytes=%llu dst=%llu src=%llu kind=%d stream=%llu", H(n), H(d), H(s), k, H(st))

static void copies(void)
{
	COPY(cuMemcpy, (DST, SRC, 101), 101, 0xd000, 0xc000, 4, 0);
	COPY(cuMemcpy_ptds, (DST, SRC, 102), 102, 0xd000, 0xc000, 4, 0);
	COPY(cuMemcpyAsync, (DST, SRC, 1ull << 40, S), 1ull << 40, 0xd000, 0xc000, 4, 0x5100);
	COPY(cuMemcpyAsync_ptsz, (DST, SRC, 104, S), 104, 0xd000, 0xc000, 4, 0x5100);
	COPY(cuMemcpyHtoD, (0xd000, P(0xc000), 100), 100, 0xd000, 0xc000, 1, 0);
	COPY(cuMemcpyHtoD_v2, (DST, P(0xc000), 105), 105, 0xd000, 0xc000, 1, 0);
	COPY(cuMemcpyHtoD_v2_ptds, (DST, P(0xc000), 106), 106, 0xd000, 0xc000, 1, 0);
	COPY(cuMemcpyHtoDAsync_v2, (DST, P(0xc000), 107, S), 107, 0xd000, 0xc000, 1, 0x5100);
	COPY(cuMemcpyHtoDAsync_v2_ptsz, (DST, P(0xc000), 108, S), 108, 0xd000, 0xc000, 1, 0x5100);
	COPY(cuMemcpyDtoH_v2, (P(0xd000), SRC, 109), 109, 0xd000, 0xc000, 2, 0);
	COPY(cuMemcpyDtoHAsync_v2, (P(0xd000), SRC, 110, S), 110, 0xd000, 0xc000, 2, 0x5100);
	COPY(cuMemcpyDtoD_v2, (DST, SRC, 111), 111, 0xd000, 0xc000, 3, 0);
	COPY(cuMemcpyDtoDAsync_v2, (DST, SRC, 112, S), 112, 0xd000, 0xc000, 3, 0x5100);
	COPY(cuMemcpyDtoA_v2, (A, 7, SRC, 113), 113, 0xa100, 0xc000, 3, 0);
	COPY(cuMemcpyAtoD_v2, (DST, A, 7, 114), 114, 0xd000, 0xa100, 3, 0);
	COPY(cuMemcpyHtoA_v2, (A, 7, P(0xc000), 115), 115, 0xa100, 0xc000, 1, 0);
	COPY(cuMemcpyHtoAAsync_v2, (A, 7, P(0xc000), 116, S), 116, 0xa100, 0xc000, 1, 0x5100);
	COPY(cuMemcpyAtoH_v2, (P(0xd000), A, 7, 117), 117, 0xd000, 0xa100, 2, 0);
	COPY(cuMemcpyAtoHAsync_v2, (P(0xd000), A, 7, 118, S), 118, 0xd000, 0xa100, 2, 0x5100);
	COPY(cuMemcpyAtoA_v2, (A, 7, B, 8, 119), 119, 0xa100, 0xa200, 3, 0);
}

static void shaped_copies(void)
{
	CUDA_MEMCPY2D d = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = P(0xc000),
			    .srcPitch = 64,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			    .dstArray = A,
			    .WidthInBytes = 11,
			    .Height = 12 };
	CUDA_MEMCPY3D t = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			    .srcDevice = SRC,
			    .dstMemoryType = CU_MEMORYTYPE_HOST,
			    .dstHost = P(0xd000),
			    .WidthInBytes = 4,
			    .Height = 5,
			    .Depth = 6 };
	CUDA_MEMCPY3D_PEER q = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
				 .srcArray = B,
				 .srcContext = C,
				 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				 .dstDevice = DST,
				 .dstContext = P(0xcd00),
				 .WidthInBytes = 4,
				 .Height = 5,
				 .Depth = 7 };

	COPY(cuMemcpy2D_v2, (&d), 132, 0xa100, 0xc000, 1, 0);
	COPY(cuMemcpy2DUnaligned_v2, (&d), 132, 0xa100, 0xc000, 1, 0);
	d.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	d.dstDevice = 0xd100;
	COPY(cuMemcpy2DAsync_v2, (&d, S), 132, 0xd100, 0xc000, 4, 0x5100);
	COPY(cuMemcpy2DAsync_v2_ptsz, (&d, S), 132, 0xd100, 0xc000, 4, 0x5100);
	COPY(cuMemcpy3D_v2, (&t), 120, 0xd000, 0xc000, 2, 0);
	COPY(cuMemcpy3DAsync_v2, (&t, S), 120, 0xd000, 0xc000, 2, 0x5100);
#define PEER "bytes=%d dst=%llu src=%llu dst_context=%llu src_context=%llu stream=%llu"
	CALL("copy_peer", cuMemcpyPeer, (DST, P(0xcd00), SRC, C, 114), PEER, 114, H(0xd000), H(0xc000), H(0xcd00),
	     H(0xcc00), H(0));
	CALL("copy_peer", cuMemcpyPeerAsync, (DST, P(0xcd00), SRC, C, 115, S), PEER, 115, H(0xd000), H(0xc000),
	     H(0xcd00), H(0xcc00), H(0x5100));
	CALL("copy_peer", cuMemcpy3DPeer, (&q), PEER, 140, H(0xd000), H(0xa200), H(0xcd00), H(0xcc00), H(0));
	CALL("copy_peer", cuMemcpy3DPeerAsync, (&q, S), PEER, 140, H(0xd000), H(0xa200), H(0xcd00), H(0xcc00),
	     H(0x5100));
}

static void batches(void)
{
	CUdeviceptr dsts[3] = { DST, DST, DST }, srcs[3] = { SRC, SRC, SRC };
	size_t sizes[3] = { 1000, 200, 30 }, first = 0, fail;
	CUmemcpyAttributes attr = { 0 };

	CALL("copy_batch", cuMemcpyBatchAsync, (dsts, srcs, sizes, 3, &attr, &first, 1, &fail, S),
	     "copies=3 bytes=1230");
	CALL("copy_batch", cuMemcpy3DBatchAsync, (5, P(0xb000), &fail, 0, S), "copies=5 bytes=0");
#if CUDA_VERSION >= 13000
	CALL("copy_batch", cuMemcpyBatchAsync_v2, (dsts, srcs, sizes, 3, &attr, &first, 1, S), "copies=3 bytes=1230");
	CALL("copy_batch", cuMemcpy3DBatchAsync_v2, (6, P(0xb000), 0, S), "copies=6 bytes=0");
#endif
}

static void sets(void)
{
#define SET "bytes=%d dst=%llu value=%d element=%d stream=%llu"
	CALL("set", cuMemsetD8_v2, (DST, 0xf7, 201), SET, 201, H(0xd000), 0xf7, 1, H(0));
	CALL("set", cuMemsetD16_v2, (DST, 0xfff7, 201), SET, 402, H(0xd000), 0xfff7, 2, H(0));
	CALL("set", cuMemsetD32_v2, (DST, 0xfffffff7, 201), SET, 804, H(0xd000), -9, 4, H(0));
	CALL("set", cuMemsetD32_v2_ptds, (DST, 7, 202), SET, 808, H(0xd000), 7, 4, H(0));
	CALL("set", cuMemsetD8Async, (DST, 1, 203, S), SET, 203, H(0xd000), 1, 1, H(0x5100));
	CALL("set", cuMemsetD16Async, (DST, 2, 204, S), SET, 408, H(0xd000), 2, 2, H(0x5100));
	CALL("set", cuMemsetD32Async_ptsz, (DST, 3, 205, S), SET, 820, H(0xd000), 3, 4, H(0x5100));
	CALL("set", cuMemsetD2D8_v2, (DST, 64, 4, 10, 11), SET, 110, H(0xd000), 4, 1, H(0));
	CALL("set", cuMemsetD2D16_v2, (DST, 64, 5, 10, 11), SET, 220, H(0xd000), 5, 2, H(0));
	CALL("set", cuMemsetD2D32_v2, (DST, 64, 6, 10, 11), SET, 440, H(0xd000), 6, 4, H(0));
	CALL("set", cuMemsetD2D8Async, (DST, 64, 7, 10, 12, S), SET, 120, H(0xd000), 7, 1, H(0x5100));
	CALL("set", cuMemsetD2D16Async, (DST, 64, 8, 10, 12, S), SET, 240, H(0xd000), 8, 2, H(0x5100));
	CALL("set", cuMemsetD2D32Async, (DST, 64, 9, 10, 12, S), SET, 480, H(0xd000), 9, 4, H(0x5100));
}

static void launches(void)
{
	CUlaunchConfig config = { .gridDimX = 0xfffffff1,
				  .gridDimY = 2,
				  .gridDimZ = 3,
				  .blockDimX = 4,
				  .blockDimY = 0xfffffff5,
				  .blockDimZ = 6,
				  .sharedMemBytes = 302,
				  .hStream = S };
	CUDA_LAUNCH_PARAMS params[2] = { { .function = F,
					   .gridDimX = 0xfffffff1,
					   .gridDimY = 2,
					   .gridDimZ = 3,
					   .blockDimX = 4,
					   .blockDimY = 0xfffffff5,
					   .blockDimZ = 6,
					   .sharedMemBytes = 304,
					   .hStream = S } };

#define LAUNCH                                                                                      \
	"function=%llu grid_x=4294967281 grid_y=2 grid_z=3 block_x=4 block_y=4294967285 block_z=6 " \
	"shared_memory=%d stream=%llu",                                                             \
		H(0xf000)
#define SHAPE 0xfffffff1, 2, 3, 4, 0xfffffff5, 6
	CALL("launch", cuLaunchKernel, (F, SHAPE, 300, S, NULL, NULL), LAUNCH, 300, H(0x5100));
	CALL("launch", cuLaunchKernel_ptsz, (F, SHAPE, 301, S, NULL, NULL), LAUNCH, 301, H(0x5100));
	CALL("launch", cuLaunchKernelEx, (&config, F, NULL, NULL), LAUNCH, 302, H(0x5100));
	CALL("launch", cuLaunchKernelEx_ptsz, (&config, F, NULL, NULL), LAUNCH, 302, H(0x5100));
	CALL("launch", cuLaunchCooperativeKernel, (F, SHAPE, 303, S, NULL), LAUNCH, 303, H(0x5100));
	CALL("launch", cuLaunchCooperativeKernelMultiDevice, (params, 2, 0), LAUNCH, 304, H(0x5100));
#define HOST "stream=%llu function=%llu data=%llu"
	CALL("host_func", cuLaunchHostFunc, (S, P(0xf100), P(0xf200)), HOST, H(0x5100), H(0xf100), H(0xf200));
	CALL("host_func", cuStreamAddCallback, (S, P(0xf300), P(0xf400), 0), HOST, H(0x5100), H(0xf300), H(0xf400));
}

/* Results are read through the pointers that were passed. */
static void memory(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = { 5, 0, CU_AD_FORMAT_HALF, 4 };
	CUDA_ARRAY3D_DESCRIPTOR deep = { 4, 5, 6, CU_AD_FORMAT_FLOAT, 2, 2 };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 3 } };
	CUmemPoolProps pools;
	CUdeviceptr d = 0;
	void *p = NULL;
	size_t pitch;

	memset(&pools, 0, sizeof(pools));
#define ALLOC "address=%llu bytes=%d memory=%d flags=%d stream=%llu pool=%llu device=%d"
	CALL("alloc", cuMemAlloc_v2, (&d, 401), ALLOC, H(d), 401, 0, 0, H(0), H(0), -1);
	CALL("alloc", cuMemAllocHost_v2, (&p, 402), ALLOC, H(p), 402, 1, 0, H(0), H(0), -1);
	CALL("alloc", cuMemHostAlloc, (&p, 403, 2), ALLOC, H(p), 403, 1, 2, H(0), H(0), -1);
	CALL("alloc", cuMemAllocManaged, (&d, 404, 1), ALLOC, H(d), 404, 2, 1, H(0), H(0), -1);
	CALL("alloc", cuMemAllocAsync, (&d, 405, S), ALLOC, H(d), 405, 3, 0, H(0x5100), H(0), -1);
	CALL("alloc", cuMemAllocFromPoolAsync, (&d, 406, POOL, S), ALLOC, H(d), 406, 3, 0, H(0x5100), H(0x9300), -1);
	CALL("alloc", cuMemAllocPitch_v2, (&d, &pitch, 10, 11, 4), ALLOC, H(d), 110, 0, 0, H(0), H(0), -1);
	CALL("alloc", cuArrayCreate_v2, ((CUarray *)&p, &flat), ALLOC, H(p), 40, 4, 0, H(0), H(0), -1);
	CALL("alloc", cuArray3DCreate_v2, ((CUarray *)&p, &deep), ALLOC, H(p), 960, 4, 2, H(0), H(0), -1);
	CALL("alloc", cuMipmappedArrayCreate, ((CUmipmappedArray *)&p, &deep, 3), ALLOC, H(p), 960, 4, 2, H(0), H(0),
	     -1);
	CALL("alloc", cuMemCreate, (&d, 2 << 20, &prop, 0), ALLOC, H(d), 2 << 20, 5, 0, H(0), H(0), 3);
	CALL("alloc", cuMemAlloc_v2, (NULL, 407), ALLOC, H(0), 407, 0, 0, H(0), H(0), -1);
#define FREE "address=%llu memory=%d stream=%llu"
	CALL("free", cuMemFree_v2, (0xd100), FREE, H(0xd100), 0, H(0));
	CALL("free", cuMemFreeHost, (P(0xd200)), FREE, H(0xd200), 1, H(0));
	CALL("free", cuMemFreeAsync, (0xd300, S), FREE, H(0xd300), 3, H(0x5100));
	CALL("free", cuArrayDestroy, (A), FREE, H(0xa100), 4, H(0));
	CALL("free", cuMemRelease, (0xd600), FREE, H(0xd600), 5, H(0));
#define MAP "address=%llu bytes=%d handle=%llu offset=%d"
	CALL("map", cuMemMap, (0xd700, 4096, 0, 0xd600, 0), MAP, H(0xd700), 4096, H(0xd600), 0);
	CALL("map", cuMemUnmap, (0xd700, 4096), MAP, H(0xd700), 4096, H(0), 0);
	CALL("host_register", cuMemHostRegister_v2, (P(0xd400), 410, 3), "address=%llu bytes=410 flags=3", H(0xd400));
	CALL("host_register", cuMemHostUnregister, (P(0xd400)), "address=%llu bytes=0 flags=0", H(0xd400));
	CALL("pool", cuMemPoolCreate, ((CUmemoryPool *)&p, &pools), "pool=%llu bytes=0", H(p));
	CALL("pool", cuMemPoolTrimTo, (POOL, 411), "pool=%llu bytes=411", H(0x9300));
	CALL("pool", cuMemPoolDestroy, (POOL), "pool=%llu bytes=0", H(0x9300));
	CALL("prefetch", cuMemPrefetchAsync, (0xd500, 412, 0, S), "address=%llu bytes=412", H(0xd500));
}

static void order(void)
{
	CUgraphExec exec = NULL;
	CUstream stream = NULL;
	CUgraph graph = NULL;
	CUevent event = NULL;
	float ms;

	CALL("sync", cuStreamSynchronize, (S), "scope=1 handle=%llu", H(0x5100));
	CALL("sync", cuStreamSynchronize_ptsz, (S), "scope=1 handle=%llu", H(0x5100));
	CALL("sync", cuEventSynchronize, (E), "scope=2 handle=%llu", H(0xe100));
	CALL("sync", cuCtxSynchronize, (), "scope=3 handle=0");
#if CUDA_VERSION >= 13000
	CALL("sync", cuCtxSynchronize_v2, (C), "scope=3 handle=%llu", H(0xcc00));
#endif
	CALL("stream_wait", cuStreamWaitEvent, (S, E, 1), "stream=%llu event_handle=%llu flags=1", H(0x5100),
	     H(0xe100));
	CALL("event_record", cuEventRecord, (E, S), "stream=%llu event_handle=%llu flags=0", H(0x5100), H(0xe100));
	CALL("event_record", cuEventRecordWithFlags, (E, S, 1), "stream=%llu event_handle=%llu flags=1", H(0x5100),
	     H(0xe100));
	CALL("event_elapsed", cuEventElapsedTime, (&ms, E, P(0xe200)), "from_event=%llu to_event=%llu elapsed_ms=1.5",
	     H(0xe100), H(0xe200));
	CALL("stream", cuStreamCreate, (&stream, 1), "stream=%llu flags=1 priority=0", H(stream));
	CALL("stream", cuStreamCreateWithPriority, (&stream, 1, -5), "stream=%llu flags=1 priority=-5", H(stream));
	CALL("stream", cuGreenCtxStreamCreate, (&stream, NULL, 1, -4), "stream=%llu flags=1 priority=-4", H(stream));
	CALL("stream", cuStreamDestroy_v2, (S), "stream=%llu flags=0 priority=0", H(0x5100));
	CALL("graph_launch", cuGraphLaunch, (X, S), "exec=%llu stream=%llu", H(0x9200), H(0x5100));
	CALL("graph_launch", cuGraphUpload, (X, S), "exec=%llu stream=%llu", H(0x9200), H(0x5100));
	CALL("graph", cuGraphInstantiateWithFlags, (&exec, G, 0), "graph=%llu exec=%llu", H(0x9100), H(exec));
	CALL("graph", cuGraphExecDestroy, (X), "graph=0 exec=%llu", H(0x9200));
	CALL("graph", cuGraphDestroy, (G), "graph=%llu exec=0", H(0x9100));
	CALL("graph", cuGraphCreate, (&graph, 0), "graph=%llu exec=0", H(graph));
	CALL("graph", cuGraphClone, (&graph, G), "graph=%llu exec=0", H(graph));
	CALL("capture", cuStreamBeginCapture_v2, (S, 2), "stream=%llu mode=2 graph=0", H(0x5100));
	CALL("capture", cuStreamBeginCaptureToGraph, (S, G, NULL, NULL, 0, 1), "stream=%llu mode=1 graph=%llu",
	     H(0x5100), H(0x9100));
	CALL("capture", cuStreamEndCapture, (S, &graph), "stream=%llu mode=0 graph=%llu", H(0x5100), H(graph));
	CALL("event", cuEventCreate, (&event, 2), "event_handle=%llu flags=2", H(event));
	CALL("event", cuEventQuery, (E), "event_handle=%llu flags=0", H(0xe100));
	CALL("event", cuEventDestroy_v2, (E), "event_handle=%llu flags=0", H(0xe100));
	CALL("call", cuStreamQuery, (S), " ");
	CALL("call", cuMemcpy2D, (NULL), " ");
}

static void code(void)
{
	CUmodule module = NULL;
	CUlibrary lib = NULL;
	CUkernel kernel = NULL;
	CUfunction f = NULL;
	CUcontext c = NULL;
	const char *name = NULL;
	char longer[3000];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CALL("module", cuModuleLoadData, (&module, P(0xb000)), "module=%llu", H(module));
	CALL("module", cuModuleUnload, (P(0xb100)), "module=%llu", H(0xb100));
	CALL("module", cuLibraryLoadData, (&lib, P(0xb000), NULL, NULL, 0, NULL, NULL, 0), "module=%llu", H(lib));
#define LOOKUP "function=%llu module=%llu kernel=%llu name=%s"
	CALL("function", cuModuleGetFunction, (&f, P(0xb100), "triton_poi_fused_add_0"), LOOKUP, H(f), H(0xb100), H(0),
	     "triton_poi_fused_add_0");
	CALL("function", cuLibraryGetKernel, (&kernel, P(0xb200), longer), LOOKUP, H(kernel), H(0xb200), H(0),
	     longer + sizeof(longer) - 1024);
	CALL("function", cuModuleGetFunction, (NULL, P(0xb100), "none"), LOOKUP, H(0), H(0xb100), H(0), "none");
	CALL("function", cuKernelGetFunction, (&f, P(0xb300)), LOOKUP, H(f), H(0), H(0xb300), "");
	CALL("function", cuFuncGetName, (&name, F), LOOKUP, H(0xf000), H(0), H(0), name);
	CALL("function", cuKernelGetName, (&name, P(0xb300)), LOOKUP, H(0xb300), H(0), H(0), name);
#define CONTEXT "context=%llu flags=%d device=%d"
	CALL("context", cuCtxCreate_v2, (&c, 8, 2), CONTEXT, H(c), 8, 2);
	CALL("context", cuCtxCreate_v3, (&c, NULL, 0, 4, 3), CONTEXT, H(c), 4, 3);
	CALL("context", cuCtxCreate_v4, (&c, NULL, 2, 5), CONTEXT, H(c), 2, 5);
	CALL("context", cuCtxDestroy_v2, (C), CONTEXT, H(0xcc00), 0, -1);
	CALL("context", cuDevicePrimaryCtxRetain, (&c, 1), CONTEXT, H(c), 0, 1);
	CALL("context", cuDevicePrimaryCtxRelease_v2, (6), CONTEXT, H(0), 0, 6);
}

int main(int argc, char **argv)
{
	char line[8];

	library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	out = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!library || !out)
		return 2;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	copies();
	shaped_copies();
	batches();
	sets();
	launches();
	memory();
	order();
	code();
	return fclose(out) ? 1 : 0;
}
