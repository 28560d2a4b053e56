// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls each traced function of the real CUDA runtime once, with different
 * arguments, and writes the expected event of each call, one line per call:
 * `FUNCTION EVENT FIELD=VALUE ..`. Pointers are invalid: without a driver the calls
 * return before they use them, so the program does nothing if there is a driver.
 *
 *	cuda_args FILE		prints "ready", waits for a line, calls, writes
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static FILE *out;

#define H(n) ((unsigned long long)(n))
#define P(n) ((void *)(uintptr_t)(n))
#define S    ((cudaStream_t)P(0x5100))
#define E    ((cudaEvent_t)P(0xe100))
#define A    ((cudaArray_t)P(0xa100))
#define B    ((cudaArray_t)P(0xa200))
#define G    ((cudaGraph_t)P(0x9100))
#define X    ((cudaGraphExec_t)P(0x9200))
#define POOL ((cudaMemPool_t)P(0x9300))
#define DST  P(0xd000)
#define SRC  P(0xc000)

/* The header declares the variants for per-thread default streams only in place of the others. */
#define SAME(type, name) extern __typeof__(name) name##_##type
SAME(ptds, cudaMemcpy);
SAME(ptsz, cudaMemcpyAsync);
SAME(ptsz, cudaLaunchKernel);
SAME(ptsz, cudaStreamSynchronize);
SAME(ptds, cudaMemcpy2D);
SAME(ptsz, cudaMemset3DAsync);

#define CALL(event, function, args, ...)                  \
	do {                                              \
		function args;                            \
		fprintf(out, "%s %s ", #function, event); \
		fprintf(out, __VA_ARGS__);                \
		fputc('\n', out);                         \
	} while (0)

#define COPY(function, args, n, d, s, k, st)                                                                       \
	CALL("cuda_copy", function, args, "bytes=%llu dst=%llu src=%llu kind=%d stream=%llu", H(n), H(d), H(s), k, \
	     H(st))

static void copies(void)
{
	enum cudaMemcpyKind h2d = cudaMemcpyHostToDevice, d2h = cudaMemcpyDeviceToHost, d2d = cudaMemcpyDeviceToDevice;

	COPY(cudaMemcpy, (DST, SRC, 101, h2d), 101, 0xd000, 0xc000, 1, 0);
	COPY(cudaMemcpy_ptds, (DST, SRC, 102, d2h), 102, 0xd000, 0xc000, 2, 0);
	COPY(cudaMemcpyAsync, (DST, SRC, 1ull << 40, d2d, S), 1ull << 40, 0xd000, 0xc000, 3, 0x5100);
	COPY(cudaMemcpyAsync_ptsz, (DST, SRC, 104, cudaMemcpyDefault, S), 104, 0xd000, 0xc000, 4, 0x5100);
	COPY(cudaMemcpyToSymbol, (DST, SRC, 105, 7, h2d), 105, 0xd000, 0xc000, 1, 0);
	COPY(cudaMemcpyFromSymbol, (DST, SRC, 106, 7, d2h), 106, 0xd000, 0xc000, 2, 0);
	COPY(cudaMemcpyToSymbolAsync, (DST, SRC, 107, 7, h2d, S), 107, 0xd000, 0xc000, 1, 0x5100);
	COPY(cudaMemcpyFromSymbolAsync, (DST, SRC, 108, 7, d2h, S), 108, 0xd000, 0xc000, 2, 0x5100);
	COPY(cudaMemcpy2D, (DST, 64, SRC, 65, 11, 12, h2d), 132, 0xd000, 0xc000, 1, 0);
	COPY(cudaMemcpy2D_ptds, (DST, 64, SRC, 65, 11, 12, d2h), 132, 0xd000, 0xc000, 2, 0);
	COPY(cudaMemcpy2DAsync, (DST, 64, SRC, 65, 11, 13, h2d, S), 143, 0xd000, 0xc000, 1, 0x5100);
	COPY(cudaMemcpyToArray, (A, 1, 2, SRC, 109, h2d), 109, 0xa100, 0xc000, 1, 0);
	COPY(cudaMemcpyToArrayAsync, (A, 1, 2, SRC, 110, h2d, S), 110, 0xa100, 0xc000, 1, 0x5100);
	COPY(cudaMemcpyFromArray, (DST, A, 1, 2, 111, d2h), 111, 0xd000, 0xa100, 2, 0);
	COPY(cudaMemcpyFromArrayAsync, (DST, A, 1, 2, 112, d2h, S), 112, 0xd000, 0xa100, 2, 0x5100);
	COPY(cudaMemcpy2DToArray, (A, 1, 2, SRC, 64, 5, 6, h2d), 30, 0xa100, 0xc000, 1, 0);
	COPY(cudaMemcpy2DToArrayAsync, (A, 1, 2, SRC, 64, 5, 7, h2d, S), 35, 0xa100, 0xc000, 1, 0x5100);
	COPY(cudaMemcpy2DFromArray, (DST, 64, A, 1, 2, 5, 8, d2h), 40, 0xd000, 0xa100, 2, 0);
	COPY(cudaMemcpy2DFromArrayAsync, (DST, 64, A, 1, 2, 5, 9, d2h, S), 45, 0xd000, 0xa100, 2, 0x5100);
	COPY(cudaMemcpyArrayToArray, (A, 1, 2, B, 3, 4, 113, d2d), 113, 0xa100, 0xa200, 3, 0);
	COPY(cudaMemcpy2DArrayToArray, (A, 1, 2, B, 3, 4, 5, 10, d2d), 50, 0xa100, 0xa200, 3, 0);
}

static void shaped_copies(void)
{
	struct cudaMemcpy3DParms p = { .srcPtr = { SRC, 1, 2, 3 },
				       .dstArray = A,
				       .dstPtr = { DST, 1, 2, 3 },
				       .extent = { 4, 5, 6 },
				       .kind = cudaMemcpyHostToDevice };
	struct cudaMemcpy3DPeerParms q = {
		.srcArray = B, .srcDevice = 3, .dstPtr = { DST, 1, 2, 3 }, .dstDevice = 4, .extent = { 4, 5, 7 }
	};

	COPY(cudaMemcpy3D, (&p), 120, 0xa100, 0xc000, 1, 0);
	COPY(cudaMemcpy3DAsync, (&p, S), 120, 0xa100, 0xc000, 1, 0x5100);
#define PEER "bytes=%d dst=%llu src=%llu dst_device=%d src_device=%d stream=%llu"
	CALL("cuda_copy_peer", cudaMemcpyPeer, (DST, 1, SRC, 2, 114), PEER, 114, H(0xd000), H(0xc000), 1, 2, H(0));
	CALL("cuda_copy_peer", cudaMemcpyPeerAsync, (DST, 1, SRC, 2, 115, S), PEER, 115, H(0xd000), H(0xc000), 1, 2,
	     H(0x5100));
	CALL("cuda_copy_peer", cudaMemcpy3DPeer, (&q), PEER, 140, H(0xd000), H(0xa200), 4, 3, H(0));
	CALL("cuda_copy_peer", cudaMemcpy3DPeerAsync, (&q, S), PEER, 140, H(0xd000), H(0xa200), 4, 3, H(0x5100));
}

static void batches(void)
{
	struct cudaMemcpyAttributes attr = { 0 };
	void *dsts[3] = { DST, DST, DST }, *srcs[3] = { SRC, SRC, SRC };
	size_t sizes[3] = { 1000, 200, 30 }, first = 0;

#if CUDART_VERSION >= 13000
	CALL("cuda_copy_batch", cudaMemcpyBatchAsync, (dsts, (const void *const *)srcs, sizes, 3, &attr, &first, 1, S),
	     "copies=3 bytes=1230");
	CALL("cuda_copy_batch", cudaMemcpy3DBatchAsync, (5, P(0xb000), 0, S), "copies=5 bytes=0");
#else
	size_t fail;

	CALL("cuda_copy_batch", cudaMemcpyBatchAsync, (dsts, srcs, sizes, 3, &attr, &first, 1, &fail, S),
	     "copies=3 bytes=1230");
	CALL("cuda_copy_batch", cudaMemcpy3DBatchAsync, (5, P(0xb000), &fail, 0, S), "copies=5 bytes=0");
#endif
}

static void sets(void)
{
	struct cudaPitchedPtr p = { DST, 64, 65, 66 };
	struct cudaExtent e = { 4, 5, 6 };

#define SET "bytes=%d dst=%llu value=%d stream=%llu"
	CALL("cuda_set", cudaMemset, (DST, 7, 201), SET, 201, H(0xd000), 7, H(0));
	CALL("cuda_set", cudaMemsetAsync, (DST, -1, 202, S), SET, 202, H(0xd000), -1, H(0x5100));
	CALL("cuda_set", cudaMemset2D, (DST, 64, 9, 10, 11), SET, 110, H(0xd000), 9, H(0));
	CALL("cuda_set", cudaMemset2DAsync, (DST, 64, 9, 10, 12, S), SET, 120, H(0xd000), 9, H(0x5100));
	CALL("cuda_set", cudaMemset3D, (p, 12, e), SET, 120, H(0xd000), 12, H(0));
	CALL("cuda_set", cudaMemset3DAsync, (p, 13, e, S), SET, 120, H(0xd000), 13, H(0x5100));
	CALL("cuda_set", cudaMemset3DAsync_ptsz, (p, 14, e, S), SET, 120, H(0xd000), 14, H(0x5100));
}

static void launches(void)
{
	dim3 grid = { 0xfffffff1, 2, 3 }, block = { 4, 0xfffffff5, 6 };
	cudaLaunchConfig_t config = { .gridDim = grid, .blockDim = block, .dynamicSmemBytes = 302, .stream = S };

#define LAUNCH                                                                                      \
	"function=%llu grid_x=4294967281 grid_y=2 grid_z=3 block_x=4 block_y=4294967285 block_z=6 " \
	"shared_memory=%d stream=%llu",                                                             \
		H(0xf000)
	CALL("cuda_launch", cudaLaunchKernel, (P(0xf000), grid, block, NULL, 300, S), LAUNCH, 300, H(0x5100));
	CALL("cuda_launch", cudaLaunchKernel_ptsz, (P(0xf000), grid, block, NULL, 301, S), LAUNCH, 301, H(0x5100));
	CALL("cuda_launch", cudaLaunchKernelExC, (&config, P(0xf000), NULL), LAUNCH, 302, H(0x5100));
	CALL("cuda_launch", cudaLaunchCooperativeKernel, (P(0xf000), grid, block, NULL, 303, S), LAUNCH, 303,
	     H(0x5100));
	CALL("cuda_host_func", cudaLaunchHostFunc, (S, P(0xf100), P(0xf200)), "stream=%llu function=%llu data=%llu",
	     H(0x5100), H(0xf100), H(0xf200));
	CALL("cuda_host_func", cudaStreamAddCallback, (S, P(0xf300), P(0xf400), 0),
	     "stream=%llu function=%llu data=%llu", H(0x5100), H(0xf300), H(0xf400));
}

static void memory(void)
{
	struct cudaChannelFormatDesc desc = { 8, 8, 8, 8, cudaChannelFormatKindUnsigned };
	struct cudaExtent e = { 4, 5, 6 };
	struct cudaPitchedPtr pitched;
	struct cudaMemPoolProps props;
	cudaMipmappedArray_t mipmapped;
	cudaMemPool_t pool;
	cudaArray_t array;
	size_t pitch;
	void *p;

	memset(&props, 0, sizeof(props));
#define ALLOC "address=0 bytes=%d memory=%d flags=%d stream=%llu pool=%llu"
	CALL("cuda_alloc", cudaMalloc, (&p, 401), ALLOC, 401, 0, 0, H(0), H(0));
	CALL("cuda_alloc", cudaMallocHost, (&p, 402), ALLOC, 402, 1, 0, H(0), H(0));
	CALL("cuda_alloc", cudaHostAlloc, (&p, 403, 2), ALLOC, 403, 1, 2, H(0), H(0));
	CALL("cuda_alloc", cudaMallocManaged, (&p, 404, 1), ALLOC, 404, 2, 1, H(0), H(0));
	CALL("cuda_alloc", cudaMallocAsync, (&p, 405, S), ALLOC, 405, 3, 0, H(0x5100), H(0));
	CALL("cuda_alloc", cudaMallocFromPoolAsync, (&p, 406, POOL, S), ALLOC, 406, 3, 0, H(0x5100), H(0x9300));
	CALL("cuda_alloc", cudaMallocPitch, (&p, &pitch, 10, 11), ALLOC, 110, 0, 0, H(0), H(0));
	CALL("cuda_alloc", cudaMalloc3D, (&pitched, e), ALLOC, 120, 0, 0, H(0), H(0));
	CALL("cuda_alloc", cudaMallocArray, (&array, &desc, 5, 0, 1), ALLOC, 20, 4, 1, H(0), H(0));
	CALL("cuda_alloc", cudaMalloc3DArray, (&array, &desc, e, 2), ALLOC, 480, 4, 2, H(0), H(0));
	CALL("cuda_alloc", cudaMallocMipmappedArray, (&mipmapped, &desc, e, 3, 1), ALLOC, 480, 4, 1, H(0), H(0));
#define FREE "address=%llu memory=%d stream=%llu"
	CALL("cuda_free", cudaFree, (P(0xd100)), FREE, H(0xd100), 0, H(0));
	CALL("cuda_free", cudaFreeHost, (P(0xd200)), FREE, H(0xd200), 1, H(0));
	CALL("cuda_free", cudaFreeAsync, (P(0xd300), S), FREE, H(0xd300), 3, H(0x5100));
	CALL("cuda_free", cudaFreeArray, (A), FREE, H(0xa100), 4, H(0));
	CALL("cuda_host_register", cudaHostRegister, (P(0xd400), 410, 3), "address=%llu bytes=410 flags=3", H(0xd400));
	CALL("cuda_host_register", cudaHostUnregister, (P(0xd400)), "address=%llu bytes=0 flags=0", H(0xd400));
	CALL("cuda_pool", cudaMemPoolCreate, (&pool, &props), "pool=0 bytes=0");
	CALL("cuda_pool", cudaMemPoolTrimTo, (POOL, 411), "pool=%llu bytes=411", H(0x9300));
	CALL("cuda_pool", cudaMemPoolDestroy, (POOL), "pool=%llu bytes=0", H(0x9300));
#if CUDART_VERSION >= 13000
	struct cudaMemLocation where = { .type = cudaMemLocationTypeDevice, .id = 0 };

	CALL("cuda_prefetch", cudaMemPrefetchAsync, (P(0xd500), 412, where, 0, S), "address=%llu bytes=412", H(0xd500));
#else
	CALL("cuda_prefetch", cudaMemPrefetchAsync, (P(0xd500), 412, 0, S), "address=%llu bytes=412", H(0xd500));
#endif
}

static void order(void)
{
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	float ms;

	CALL("cuda_sync", cudaDeviceSynchronize, (), "scope=0 handle=0");
	CALL("cuda_sync", cudaStreamSynchronize, (S), "scope=1 handle=%llu", H(0x5100));
	CALL("cuda_sync", cudaStreamSynchronize_ptsz, (S), "scope=1 handle=%llu", H(0x5100));
	CALL("cuda_sync", cudaEventSynchronize, (E), "scope=2 handle=%llu", H(0xe100));
	CALL("cuda_stream_wait", cudaStreamWaitEvent, (S, E, 1), "stream=%llu event_handle=%llu flags=1", H(0x5100),
	     H(0xe100));
	CALL("cuda_event_record", cudaEventRecord, (E, S), "event_handle=%llu stream=%llu flags=0", H(0xe100),
	     H(0x5100));
	CALL("cuda_event_record", cudaEventRecordWithFlags, (E, S, 1), "event_handle=%llu stream=%llu flags=1",
	     H(0xe100), H(0x5100));
	CALL("cuda_event_elapsed", cudaEventElapsedTime, (&ms, E, (cudaEvent_t)P(0xe200)),
	     "from_event=%llu to_event=%llu elapsed_ms=0", H(0xe100), H(0xe200));
	CALL("cuda_stream", cudaStreamCreate, (&stream), "stream=0 flags=0 priority=0");
	CALL("cuda_stream", cudaStreamCreateWithFlags, (&stream, 1), "stream=0 flags=1 priority=0");
	CALL("cuda_stream", cudaStreamCreateWithPriority, (&stream, 1, -3), "stream=0 flags=1 priority=-3");
	CALL("cuda_stream", cudaStreamDestroy, (S), "stream=%llu flags=0 priority=0", H(0x5100));
	CALL("cuda_graph", cudaGraphCreate, (&graph, 0), "graph=0 exec=0");
	CALL("cuda_graph", cudaGraphInstantiate, (&exec, G, 0), "graph=%llu exec=0", H(0x9100));
	CALL("cuda_graph", cudaGraphExecUpdate, (X, G, NULL), "graph=%llu exec=%llu", H(0x9100), H(0x9200));
	CALL("cuda_graph_launch", cudaGraphLaunch, (X, S), "exec=%llu stream=%llu", H(0x9200), H(0x5100));
	CALL("cuda_graph_launch", cudaGraphUpload, (X, S), "exec=%llu stream=%llu", H(0x9200), H(0x5100));
	CALL("cuda_graph", cudaGraphExecDestroy, (X), "graph=0 exec=%llu", H(0x9200));
	CALL("cuda_graph", cudaGraphDestroy, (G), "graph=%llu exec=0", H(0x9100));
	CALL("cuda_capture", cudaStreamBeginCapture, (S, cudaStreamCaptureModeRelaxed), "stream=%llu mode=2 graph=0",
	     H(0x5100));
	CALL("cuda_capture", cudaStreamEndCapture, (S, &graph), "stream=%llu mode=0 graph=0", H(0x5100));
}

/* Only with --cuda=all. */
static void chatty(void)
{
	cudaEvent_t event;
	int device;

	CALL("cuda_call", cudaGetDevice, (&device), "ret=35");
	CALL("cuda_call", cudaSetDevice, (0), "ret=35");
	CALL("cuda_call", cudaPeekAtLastError, (), "ret=35");
	CALL("cuda_call", cudaGetLastError, (), "ret=35");
	CALL("cuda_event", cudaEventCreate, (&event), "event_handle=0 flags=0");
	CALL("cuda_event", cudaEventCreateWithFlags, (&event, 2), "event_handle=0 flags=2");
	CALL("cuda_event", cudaEventQuery, (E), "event_handle=%llu", H(0xe100));
	CALL("cuda_event", cudaEventDestroy, (E), "event_handle=%llu", H(0xe100));
}

int main(int argc, char **argv)
{
	char line[8];
	int devices;

	if (argc < 2 || !(out = fopen(argv[1], "w")))
		return 2;
	if (cudaGetDeviceCount(&devices) == cudaSuccess)
		return 77;
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
	chatty();
	fclose(out);
	return 0;
}
