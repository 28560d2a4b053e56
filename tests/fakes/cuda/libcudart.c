// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The runtime's double: each call is one of the driver's. */
#include "fake.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#include <cupti_runtime_cbid.h>

CUresult fake__set_device(uint32_t device);
uint32_t fake__device(void);
CUresult fake__add_kernel_node(CUgraph graph, const struct fake_kernel *k, CUgraphNode *out);
CUresult fake__add_set_node(CUgraph graph, size_t bytes, CUgraphNode *out);

static __thread cudaError_t last;

static cudaError_t result(CUresult r)
{
	if (r)
		last = r == CUDA_ERROR_INVALID_DEVICE ? cudaErrorInvalidDevice : (cudaError_t)r;
	return r == CUDA_ERROR_INVALID_DEVICE ? cudaErrorInvalidDevice : (cudaError_t)r;
}

/* The first call initializes CUDA. A cbid of 0: a tool does not see the call. */
#define TRACED_CALL(cbid, call)                        \
	({                                             \
		CUresult r_ = cuInit(0);               \
		uint64_t start_ = fake__now();         \
		fake__enter_runtime();                 \
		if (!r_)                               \
			r_ = (call);                   \
		fake__leave_runtime(cbid, start_, r_); \
		result(r_);                            \
	})
#define CALL(call) TRACED_CALL(0, call)
#define CBID(name) CUPTI_RUNTIME_TRACE_CBID_##name

cudaError_t cudaGetDeviceCount(int *count)
{
	return CALL(cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device)
{
	return CALL(fake__set_device(device));
}

cudaError_t cudaGetDevice(int *device)
{
	*device = fake__device();
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t e = last;

	last = cudaSuccess;
	return e;
}

cudaError_t cudaProfilerStart(void)
{
	return CALL(cuProfilerStart());
}

cudaError_t cudaProfilerStop(void)
{
	return CALL(cuProfilerStop());
}

cudaError_t cudaDeviceReset(void)
{
	return CALL(cuDevicePrimaryCtxReset_v2(fake__device()));
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	return CALL(cuMemAlloc_v2((CUdeviceptr *)out, bytes));
}

cudaError_t cudaFree(void *address)
{
	return CALL(cuMemFree_v2((CUdeviceptr)address));
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
	return CALL(cuStreamCreate(out, 0));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return CALL(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return CALL(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaDeviceSynchronize(void)
{
	return CALL(cuCtxSynchronize());
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	return CALL(cuEventCreate(out, 0));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return CALL(cuEventRecord(event, stream));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return CALL(cuEventSynchronize(event));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream)
{
	return TRACED_CALL(CBID(cudaLaunchKernel_v7000),
			   cuLaunchKernel((CUfunction)function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
					  shared, stream, args, NULL));
}

static CUresult copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync_v2((CUdeviceptr)dst, src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync_v2(dst, (CUdeviceptr)src, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync_v2((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return TRACED_CALL(CBID(cudaMemcpyAsync_v3020), copy(dst, src, bytes, kind, stream));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	return TRACED_CALL(CBID(cudaMemcpy_v3020), kind == cudaMemcpyHostToDevice ?
							   cuMemcpyHtoD_v2((CUdeviceptr)dst, src, bytes) :
							   cuMemcpyDtoH_v2(dst, (CUdeviceptr)src, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t bytes, cudaStream_t stream)
{
	return TRACED_CALL(CBID(cudaMemcpyPeerAsync_v4000),
			   cuMemcpyPeerAsync((CUdeviceptr)dst, NULL, (CUdeviceptr)src, NULL, bytes, stream));
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
	return TRACED_CALL(CBID(cudaMemsetAsync_v3020), cuMemsetD8Async((CUdeviceptr)dst, value, bytes, stream));
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned int flags)
{
	return CALL(cuGraphCreate(out, flags));
}

/* params->func alone counts. */
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
				   const struct cudaKernelNodeParams *params)
{
	return CALL(fake__add_kernel_node(graph, params->func, out));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
				   const struct cudaMemsetParams *params)
{
	return CALL(fake__add_set_node(graph, params->width * params->height * params->elementSize, out));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
	return CALL(cuGraphInstantiateWithFlags(out, graph, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return TRACED_CALL(CBID(cudaGraphLaunch_v10000), cuGraphLaunch(exec, stream));
}
