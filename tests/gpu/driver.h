/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUDA's driver API as far as the programs here use it, found in libcuda.so.1 at run time: they are built with
 * gcc and libc alone. Signatures after cuda.h of CUDA 11.8 to 13; the names are those that the library
 * exports, which differ from the header's where a function has had several versions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int cu_result, cu_device;
typedef uint64_t cu_address;
typedef struct cu_opaque *cu_context, *cu_module, *cu_function, *cu_stream, *cu_event, *cu_graph, *cu_node,
	*cu_graph_exec;

/* CUDA_KERNEL_NODE_PARAMS_v2; version 1 is its beginning. */
struct cu_kernel_node {
	cu_function function;
	unsigned int grid[3], block[3], shared;
	void **parameters, **extra;
	void *kernel;
	cu_context context;
};

/* CUDA_MEMSET_NODE_PARAMS */
struct cu_memset_node {
	cu_address address;
	size_t pitch;
	unsigned int value, element_size;
	size_t width, height;
};

enum {
	CU_STREAM_NON_BLOCKING = 1,
	CU_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
	CU_ERROR_NO_JIT = 221, /* CUDA_ERROR_JIT_COMPILER_NOT_FOUND */
	CU_JIT_ERROR_LOG = 5,
	CU_JIT_ERROR_LOG_BYTES = 6,
};

/* required, name here, name in the library, arguments */
#define CU_FUNCTIONS(X)                                                                                           \
	X(1, init, cuInit, (unsigned int flags))                                                                  \
	X(1, driver_version, cuDriverGetVersion, (int *version))                                                  \
	X(1, device_count, cuDeviceGetCount, (int *count))                                                        \
	X(1, device_get, cuDeviceGet, (cu_device * device, int ordinal))                                          \
	X(1, device_name, cuDeviceGetName, (char *name, int len, cu_device device))                               \
	X(1, device_attribute, cuDeviceGetAttribute, (int *value, int attribute, cu_device device))               \
	X(1, primary_retain, cuDevicePrimaryCtxRetain, (cu_context * context, cu_device device))                  \
	X(0, primary_release, cuDevicePrimaryCtxRelease_v2, (cu_device device))                                   \
	X(0, primary_reset, cuDevicePrimaryCtxReset_v2, (cu_device device))                                       \
	X(0, context_create, cuCtxCreate_v2, (cu_context * context, unsigned int flags, cu_device device))        \
	X(0, context_destroy, cuCtxDestroy_v2, (cu_context context))                                              \
	X(1, context_set, cuCtxSetCurrent, (cu_context context))                                                  \
	X(1, context_synchronize, cuCtxSynchronize, (void))                                                       \
	X(1, module_load, cuModuleLoadDataEx,                                                                     \
	  (cu_module * module, const void *image, unsigned int n, int *options, void **values))                   \
	X(1, module_function, cuModuleGetFunction, (cu_function * function, cu_module module, const char *name))  \
	X(1, stream_create, cuStreamCreate, (cu_stream * stream, unsigned int flags))                             \
	X(1, stream_destroy, cuStreamDestroy_v2, (cu_stream stream))                                              \
	X(1, stream_synchronize, cuStreamSynchronize, (cu_stream stream))                                         \
	X(1, stream_wait, cuStreamWaitEvent, (cu_stream stream, cu_event event, unsigned int flags))              \
	X(1, event_create, cuEventCreate, (cu_event * event, unsigned int flags))                                 \
	X(1, event_record, cuEventRecord, (cu_event event, cu_stream stream))                                     \
	X(1, event_synchronize, cuEventSynchronize, (cu_event event))                                             \
	X(1, event_elapsed, cuEventElapsedTime, (float *ms, cu_event from, cu_event to))                          \
	X(1, alloc, cuMemAlloc_v2, (cu_address * address, size_t bytes))                                          \
	X(1, free, cuMemFree_v2, (cu_address address))                                                            \
	X(1, alloc_host, cuMemAllocHost_v2, (void **address, size_t bytes))                                       \
	X(1, launch, cuLaunchKernel,                                                                              \
	  (cu_function f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,    \
	   unsigned int bz, unsigned int shared, cu_stream stream, void **parameters, void **extra))              \
	X(1, htod_async, cuMemcpyHtoDAsync_v2, (cu_address to, const void *from, size_t bytes, cu_stream stream)) \
	X(1, dtoh_async, cuMemcpyDtoHAsync_v2, (void *to, cu_address from, size_t bytes, cu_stream stream))       \
	X(1, dtod_async, cuMemcpyDtoDAsync_v2, (cu_address to, cu_address from, size_t bytes, cu_stream stream))  \
	X(1, htod, cuMemcpyHtoD_v2, (cu_address to, const void *from, size_t bytes))                              \
	X(1, dtoh, cuMemcpyDtoH_v2, (void *to, cu_address from, size_t bytes))                                    \
	X(0, dtod, cuMemcpyDtoD_v2, (cu_address to, cu_address from, size_t bytes))                               \
	X(1, set8_async, cuMemsetD8Async, (cu_address to, unsigned char value, size_t n, cu_stream stream))       \
	X(0, set32_async, cuMemsetD32Async, (cu_address to, unsigned int value, size_t n, cu_stream stream))      \
	X(0, set8, cuMemsetD8_v2, (cu_address to, unsigned char value, size_t n))                                 \
	X(1, graph_create, cuGraphCreate, (cu_graph * graph, unsigned int flags))                                 \
	X(0, graph_kernel, cuGraphAddKernelNode_v2,                                                               \
	  (cu_node * node, cu_graph graph, const cu_node *after, size_t n, const struct cu_kernel_node *kernel))  \
	X(0, graph_kernel_11, cuGraphAddKernelNode,                                                               \
	  (cu_node * node, cu_graph graph, const cu_node *after, size_t n, const struct cu_kernel_node *kernel))  \
	X(1, graph_memset, cuGraphAddMemsetNode,                                                                  \
	  (cu_node * node, cu_graph graph, const cu_node *after, size_t n, const struct cu_memset_node *set,      \
	   cu_context context))                                                                                   \
	X(1, graph_instantiate, cuGraphInstantiateWithFlags,                                                      \
	  (cu_graph_exec * exec, cu_graph graph, unsigned long long flags))                                       \
	X(1, graph_launch, cuGraphLaunch, (cu_graph_exec exec, cu_stream stream))                                 \
	X(1, error_name, cuGetErrorName, (cu_result error, const char **name))

#define CU_MEMBER(required, ours, theirs, arguments) cu_result(*ours) arguments;
struct driver {
	CU_FUNCTIONS(CU_MEMBER)
};

extern struct driver cu;

/* Finds libcuda.so.1 and all of the above, or says what is missing and ends the program. */
void driver__load(void);
/* Says what failed, writes the truth so far and ends the program. */
void driver__failed(const char *what, cu_result result);

#define MUST(call)                                      \
	do {                                            \
		cu_result result_ = (call);             \
		if (result_)                            \
			driver__failed(#call, result_); \
	} while (0)
