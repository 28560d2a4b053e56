// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Devices, contexts, and the rest that a program of the driver's needs. */
#define _GNU_SOURCE
#include "device.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CLOCK_KHZ 1000000 /* a cycle is a nanosecond */

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	*out = ordinal;
	return (uint32_t)ordinal < machine.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	snprintf(name, len, "Simulated GPU");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device)
{
	*out = attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE ? CLOCK_KHZ : 0;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	pthread_mutex_lock(&machine.lock);
	*out = (CUcontext)machine__context(device);
	pthread_mutex_unlock(&machine.lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return CUDA_SUCCESS;
}

#undef cuCtxCreate_v2
CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
	return cuCtxCreate_v4(out, NULL, flags, device);
}

/* Ended streams stay allocated: what was put into them may be looked at later. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
	pthread_mutex_lock(&machine.lock);
	for (uint32_t i = 0; i < machine.n_streams; i++)
		if (machine.streams[i] == (struct stream *)stream)
			machine.streams[i] = NULL;
	pthread_mutex_unlock(&machine.lock);
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
	const struct event *a = (const struct event *)from, *b = (const struct event *)to;

	if (!a->at || !b->at)
		return CUDA_ERROR_INVALID_HANDLE;
	if (b->at > fake__now())
		return CUDA_ERROR_NOT_READY;
	*ms = (int64_t)(b->at - a->at) / 1e6f;
	return CUDA_SUCCESS;
}

/* Both are exported, whatever the header calls it. */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return elapsed(ms, from, to);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	return elapsed(ms, from, to);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
	*out = malloc(bytes);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *address)
{
	free(address);
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
	*out = error ? "CUDA_ERROR" : "CUDA_SUCCESS";
	return CUDA_SUCCESS;
}
