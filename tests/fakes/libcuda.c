// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A libcuda that does nothing: each function returns a number of its own, or 0 and a handle of its own. All that the
 * family's programs name, and a few more. What a GPU does is in tests/fakes/cuda/.
 */
#include <stdint.h>

/*
 * Begins with a push, as most functions do: a first instruction that the kernel has to single-step costs ten times as
 * much
 */
#define PLAIN(name)                               \
	int name(void)                            \
	{                                         \
		volatile int n = 1 + __COUNTER__; \
		return n;                         \
	}
/* The first argument says where the handle goes */
#define OUT(name)                                        \
	int name(uintptr_t *out)                         \
	{                                                \
		if (out)                                 \
			*out = 0x70000000 + __COUNTER__; \
		return out ? 0 : 1;                      \
	}

/* clang-format off */
PLAIN(cuArrayDestroy) PLAIN(cuCtxDestroy) PLAIN(cuCtxDestroy_v2) PLAIN(cuCtxSynchronize) PLAIN(cuCtxSynchronize_v2)
PLAIN(cuDevicePrimaryCtxRelease) PLAIN(cuDevicePrimaryCtxRelease_v2) PLAIN(cuDevicePrimaryCtxReset)
PLAIN(cuDevicePrimaryCtxReset_v2) PLAIN(cuEventDestroy) PLAIN(cuEventDestroy_v2) PLAIN(cuEventQuery)
PLAIN(cuEventRecord) PLAIN(cuEventRecordWithFlags) PLAIN(cuEventRecordWithFlags_ptsz) PLAIN(cuEventRecord_ptsz)
PLAIN(cuEventSynchronize) PLAIN(cuGraphDestroy) PLAIN(cuGraphExecDestroy) PLAIN(cuGraphExecUpdate)
PLAIN(cuGraphExecUpdate_v2) PLAIN(cuGraphLaunch) PLAIN(cuGraphLaunch_ptsz) PLAIN(cuGraphUpload)
PLAIN(cuGraphUpload_ptsz) PLAIN(cuLaunch) PLAIN(cuLaunchCooperativeKernel) PLAIN(cuLaunchCooperativeKernelMultiDevice)
PLAIN(cuLaunchCooperativeKernel_ptsz) PLAIN(cuLaunchGrid) PLAIN(cuLaunchGridAsync) PLAIN(cuLaunchHostFunc)
PLAIN(cuLaunchHostFunc_ptsz) PLAIN(cuLaunchHostFunc_v2) PLAIN(cuLaunchHostFunc_v2_ptsz) PLAIN(cuLaunchKernel)
PLAIN(cuLaunchKernelEx) PLAIN(cuLaunchKernelEx_ptsz) PLAIN(cuLibraryUnload) PLAIN(cuMemFree) PLAIN(cuMemFreeAsync)
PLAIN(cuMemFreeAsync_ptsz) PLAIN(cuMemFree_v2) PLAIN(cuMemHostRegister) PLAIN(cuMemHostRegister_v2)
PLAIN(cuMemHostUnregister) PLAIN(cuMemMap) PLAIN(cuMemPoolDestroy) PLAIN(cuMemPoolTrimTo) PLAIN(cuMemPrefetchAsync)
PLAIN(cuMemPrefetchAsync_ptsz) PLAIN(cuMemPrefetchAsync_v2) PLAIN(cuMemPrefetchAsync_v2_ptsz) PLAIN(cuMemRelease)
PLAIN(cuMemUnmap) PLAIN(cuMemcpy) PLAIN(cuMemcpy2DAsync_v2) PLAIN(cuMemcpy2DAsync_v2_ptsz)
PLAIN(cuMemcpy2DUnaligned_v2) PLAIN(cuMemcpy2DUnaligned_v2_ptds) PLAIN(cuMemcpy2D_v2) PLAIN(cuMemcpy2D_v2_ptds)
PLAIN(cuMemcpy3DAsync_v2) PLAIN(cuMemcpy3DAsync_v2_ptsz) PLAIN(cuMemcpy3DBatchAsync) PLAIN(cuMemcpy3DBatchAsync_ptsz)
PLAIN(cuMemcpy3DBatchAsync_v2) PLAIN(cuMemcpy3DBatchAsync_v2_ptsz) PLAIN(cuMemcpy3DPeer) PLAIN(cuMemcpy3DPeerAsync)
PLAIN(cuMemcpy3DPeerAsync_ptsz) PLAIN(cuMemcpy3DPeer_ptds) PLAIN(cuMemcpy3DWithAttributesAsync)
PLAIN(cuMemcpy3DWithAttributesAsync_ptsz) PLAIN(cuMemcpy3D_v2) PLAIN(cuMemcpy3D_v2_ptds) PLAIN(cuMemcpyAsync)
PLAIN(cuMemcpyAsync_ptsz) PLAIN(cuMemcpyAtoA) PLAIN(cuMemcpyAtoA_v2) PLAIN(cuMemcpyAtoA_v2_ptds) PLAIN(cuMemcpyAtoD)
PLAIN(cuMemcpyAtoD_v2) PLAIN(cuMemcpyAtoD_v2_ptds) PLAIN(cuMemcpyAtoH) PLAIN(cuMemcpyAtoHAsync)
PLAIN(cuMemcpyAtoHAsync_v2) PLAIN(cuMemcpyAtoHAsync_v2_ptsz) PLAIN(cuMemcpyAtoH_v2) PLAIN(cuMemcpyAtoH_v2_ptds)
PLAIN(cuMemcpyBatchAsync) PLAIN(cuMemcpyBatchAsync_ptsz) PLAIN(cuMemcpyBatchAsync_v2)
PLAIN(cuMemcpyBatchAsync_v2_ptsz) PLAIN(cuMemcpyDtoA) PLAIN(cuMemcpyDtoA_v2) PLAIN(cuMemcpyDtoA_v2_ptds)
PLAIN(cuMemcpyDtoD) PLAIN(cuMemcpyDtoDAsync) PLAIN(cuMemcpyDtoDAsync_v2) PLAIN(cuMemcpyDtoDAsync_v2_ptsz)
PLAIN(cuMemcpyDtoD_v2) PLAIN(cuMemcpyDtoD_v2_ptds) PLAIN(cuMemcpyDtoH) PLAIN(cuMemcpyDtoHAsync)
PLAIN(cuMemcpyDtoHAsync_v2) PLAIN(cuMemcpyDtoHAsync_v2_ptsz) PLAIN(cuMemcpyDtoH_v2) PLAIN(cuMemcpyDtoH_v2_ptds)
PLAIN(cuMemcpyHtoA) PLAIN(cuMemcpyHtoAAsync) PLAIN(cuMemcpyHtoAAsync_v2) PLAIN(cuMemcpyHtoAAsync_v2_ptsz)
PLAIN(cuMemcpyHtoA_v2) PLAIN(cuMemcpyHtoA_v2_ptds) PLAIN(cuMemcpyHtoD) PLAIN(cuMemcpyHtoDAsync)
PLAIN(cuMemcpyHtoDAsync_v2) PLAIN(cuMemcpyHtoDAsync_v2_ptsz) PLAIN(cuMemcpyHtoD_v2) PLAIN(cuMemcpyHtoD_v2_ptds)
PLAIN(cuMemcpyPeer) PLAIN(cuMemcpyPeerAsync) PLAIN(cuMemcpyPeerAsync_ptsz) PLAIN(cuMemcpyPeer_ptds)
PLAIN(cuMemcpyWithAttributesAsync) PLAIN(cuMemcpyWithAttributesAsync_ptsz) PLAIN(cuMemcpy_ptds) PLAIN(cuMemsetD16)
PLAIN(cuMemsetD16Async) PLAIN(cuMemsetD16Async_ptsz) PLAIN(cuMemsetD16_v2) PLAIN(cuMemsetD16_v2_ptds)
PLAIN(cuMemsetD2D16) PLAIN(cuMemsetD2D16Async) PLAIN(cuMemsetD2D16Async_ptsz) PLAIN(cuMemsetD2D16_v2)
PLAIN(cuMemsetD2D16_v2_ptds) PLAIN(cuMemsetD2D32) PLAIN(cuMemsetD2D32Async) PLAIN(cuMemsetD2D32Async_ptsz)
PLAIN(cuMemsetD2D32_v2) PLAIN(cuMemsetD2D32_v2_ptds) PLAIN(cuMemsetD2D8) PLAIN(cuMemsetD2D8Async)
PLAIN(cuMemsetD2D8Async_ptsz) PLAIN(cuMemsetD2D8_v2) PLAIN(cuMemsetD2D8_v2_ptds) PLAIN(cuMemsetD32)
PLAIN(cuMemsetD32Async) PLAIN(cuMemsetD32Async_ptsz) PLAIN(cuMemsetD32_v2) PLAIN(cuMemsetD32_v2_ptds)
PLAIN(cuMemsetD8) PLAIN(cuMemsetD8Async) PLAIN(cuMemsetD8Async_ptsz) PLAIN(cuMemsetD8_v2) PLAIN(cuMemsetD8_v2_ptds)
PLAIN(cuMipmappedArrayDestroy) PLAIN(cuModuleUnload) PLAIN(cuStreamAddCallback) PLAIN(cuStreamAddCallback_ptsz)
PLAIN(cuStreamBeginCapture) PLAIN(cuStreamBeginCaptureToGraph) PLAIN(cuStreamBeginCaptureToGraph_ptsz)
PLAIN(cuStreamBeginCapture_ptsz) PLAIN(cuStreamBeginCapture_v2) PLAIN(cuStreamBeginCapture_v2_ptsz)
PLAIN(cuStreamBeginRecaptureToGraph) PLAIN(cuStreamBeginRecaptureToGraph_ptsz) PLAIN(cuStreamDestroy)
PLAIN(cuStreamDestroy_v2) PLAIN(cuStreamSynchronize) PLAIN(cuStreamSynchronize_ptsz) PLAIN(cuStreamWaitEvent)
PLAIN(cuStreamWaitEvent_ptsz) PLAIN(cuGetErrorName) PLAIN(cuDeviceGet) PLAIN(cuMemAlloc) PLAIN(cuGetProcAddress_v2)
PLAIN(cuStreamQuery) PLAIN(cuMemcpy2D)
OUT(cuArray3DCreate_v2) OUT(cuArrayCreate_v2) OUT(cuCtxCreate) OUT(cuCtxCreate_v2) OUT(cuCtxCreate_v3)
OUT(cuCtxCreate_v4) OUT(cuDevicePrimaryCtxRetain) OUT(cuEventCreate) OUT(cuGraphClone) OUT(cuGraphCreate)
OUT(cuGraphInstantiate) OUT(cuGraphInstantiateWithFlags) OUT(cuGraphInstantiateWithParams)
OUT(cuGraphInstantiateWithParams_ptsz) OUT(cuGraphInstantiate_v2) OUT(cuGreenCtxStreamCreate) OUT(cuKernelGetFunction)
OUT(cuLibraryGetKernel) OUT(cuLibraryLoadData) OUT(cuLibraryLoadFromFile) OUT(cuMemAllocAsync)
OUT(cuMemAllocAsync_ptsz) OUT(cuMemAllocFromPoolAsync) OUT(cuMemAllocFromPoolAsync_ptsz) OUT(cuMemAllocHost_v2)
OUT(cuMemAllocManaged) OUT(cuMemAllocPitch_v2) OUT(cuMemAlloc_v2) OUT(cuMemCreate) OUT(cuMemHostAlloc)
OUT(cuMemPoolCreate) OUT(cuMipmappedArrayCreate) OUT(cuModuleGetFunction) OUT(cuModuleLoad) OUT(cuModuleLoadData)
OUT(cuModuleLoadDataEx) OUT(cuModuleLoadFatBinary) OUT(cuStreamCreate) OUT(cuStreamCreateWithPriority)
	/* clang-format on */

	int cuStreamEndCapture(void *stream, uintptr_t *graph)
{
	*graph = 0x9191;
	return 0;
}

int cuStreamEndCapture_ptsz(void *stream, uintptr_t *graph)
{
	*graph = 0x9292;
	return 0;
}

int cuEventElapsedTime(float *ms)
{
	*ms = 1.5;
	return 0;
}

int cuEventElapsedTime_v2(float *ms)
{
	*ms = 2.5;
	return 0;
}

/* A page that was never touched can't be read by a probe */
static int hand_back(const char **to, const char *name)
{
	*to = name;
	return *(volatile const char *)name ? 0 : 1;
}

int cuFuncGetName(const char **name)
{
	return hand_back(name, "_Z4gemmILi128EEvPfS0_S0_i");
}

int cuKernelGetName(const char **name)
{
	return hand_back(name, "_Z7softmaxPfi");
}

/* The driver's functions call each other */
int cuLaunchKernel_ptsz(void)
{
	volatile int result = cuLaunchKernel();

	return result + 1000;
}

int cuMemFreeHost(void)
{
	return cuMemFree_v2();
}
