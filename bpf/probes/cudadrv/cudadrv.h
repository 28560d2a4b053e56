/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the CUDA driver library, named like those of the runtime (probes/cuda/cuda.h), with the same fields where
 * the meaning is the same. Sources: cuda.h of CUDA 11.8 to 13.5.
 *
 * The event's probe says which function was called. Other versions of a function (_v2) and the variants for a
 * thread's default stream (_ptsz, _ptds) are separate functions. A call that the runtime or the driver makes within a
 * recorded call is left out, except for cudadrv_function: see docs/cudadrv.md.
 */
#pragma once

#include "core/event.h"
#include "core/gil_held.h"
#include "probes/cuda/cuda.h"

FAMILY(cudadrv, 0x06, FAMILY_DEFAULT, "calls of the CUDA driver (libcuda) that the runtime did not make");

struct cudadrv_copy {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested");
	u64 dst UNIT(hex) DOC("destination: address or array");
	u64 src UNIT(hex) DOC("source: address or array");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	enum cuda_copy_kind kind DOC("as the function's name states; of a 2D or 3D copy, as its memory types state");
	CUDA_STACK_FIELDS;
} EVENT(cudadrv_copy, 0x0601, "a copy requested through the driver");

struct cudadrv_launch {
	struct call call;
	u64 function UNIT(hex) DOC("CUfunction or CUkernel: see cudadrv_function for its name");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 shared_memory UNIT(bytes) DOC("dynamic shared memory of a block");
	u32 grid_x DOC("blocks");
	u32 grid_y DOC("blocks");
	u32 grid_z DOC("blocks");
	u32 block_x DOC("threads of a block; 0: set before, by cuFuncSetBlockShape");
	u32 block_y DOC("threads of a block");
	u32 block_z DOC("threads of a block");
	CUDA_STACK_FIELDS;
} EVENT(cudadrv_launch, 0x0602, "a kernel launch; of a launch on several devices, that on the first device");

struct cudadrv_set {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested");
	u64 dst UNIT(hex) DOC("destination address");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	s32 value DOC("written to each element");
	CUDA_STACK_FIELDS;
	u32 element UNIT(bytes) DOC("size of an element: 1, 2 or 4");
} EVENT(cudadrv_set, 0x0603, "memory set to a value");

struct cudadrv_alloc {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested, without the padding of the pitch");
	u64 address UNIT(hex) DOC("what was allocated: address, array or, of cuMemCreate, handle; 0 if that failed");
	u64 stream UNIT(hex) DOC("of an allocation in stream order");
	u64 pool UNIT(hex) DOC("memory pool if one was named");
	u32 api_flags DOC("as passed");
	enum cuda_memory memory;
	CUDA_STACK_FIELDS;
	s32 device DOC(
		"of cuMemCreate: the device or NUMA node that it names; else -1: the device of the current context");
} EVENT(cudadrv_alloc, 0x0604, "memory allocated");

struct cudadrv_free {
	struct call call;
	u64 address UNIT(hex) DOC("address, array or, of cuMemRelease, handle");
	u64 stream UNIT(hex) DOC("of a free in stream order");
	enum cuda_memory memory;
	CUDA_STACK_FIELDS;
} EVENT(cudadrv_free, 0x0605, "memory freed");

struct cudadrv_host_register {
	struct call call;
	CUDA_HOST_REGISTER_FIELDS;
} EVENT(cudadrv_host_register, 0x0606, "host memory pinned or unpinned");

struct cudadrv_pool {
	struct call call;
	CUDA_POOL_FIELDS;
} EVENT(cudadrv_pool, 0x0607, "a memory pool created, destroyed or trimmed");

struct cudadrv_sync {
	struct call call;
	u64 handle UNIT(hex) DOC("stream, event or context waited for; 0 of a context: the current one");
	enum cuda_sync_scope scope;
	CUDA_STACK_FIELDS;
} EVENT(cudadrv_sync, 0x0608, "the thread waits for the device");

struct cudadrv_stream_wait {
	struct call call;
	CUDA_STREAM_WAIT_FIELDS;
} EVENT(cudadrv_stream_wait, 0x0609, "a stream has to wait for an event");

struct cudadrv_event_record {
	struct call call;
	CUDA_EVENT_RECORD_FIELDS;
} EVENT(cudadrv_event_record, 0x060a, "an event recorded in a stream");

struct cudadrv_event_elapsed {
	struct call call;
	CUDA_EVENT_ELAPSED_FIELDS;
} EVENT(cudadrv_event_elapsed, 0x060b, "the time between two events queried");

struct cudadrv_stream {
	struct call call;
	CUDA_STREAM_FIELDS;
} EVENT(cudadrv_stream, 0x060c, "a stream created or destroyed");

struct cudadrv_graph_launch {
	struct call call;
	CUDA_GRAPH_LAUNCH_FIELDS;
} EVENT(cudadrv_graph_launch, 0x060d, "a graph launched or uploaded");

struct cudadrv_graph {
	struct call call;
	CUDA_GRAPH_FIELDS;
} EVENT(cudadrv_graph, 0x060e, "a graph created, instantiated, updated or destroyed");

struct cudadrv_capture {
	struct call call;
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 graph UNIT(hex) DOC("graph captured to, or what the capture's end returned");
	u32 mode DOC("CUstreamCaptureMode of a begin");
} EVENT(cudadrv_capture, 0x060f, "stream capture begun or ended");

struct cudadrv_copy_peer {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested");
	u64 dst UNIT(hex) DOC("destination: address or array");
	u64 src UNIT(hex) DOC("source: address or array");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 dst_context UNIT(hex) DOC("context of the destination");
	u64 src_context UNIT(hex) DOC("context of the source");
} EVENT(cudadrv_copy_peer, 0x0610, "a copy between two named contexts");

struct cudadrv_copy_batch {
	struct call call;
	CUDA_COPY_BATCH_FIELDS;
} EVENT(cudadrv_copy_batch, 0x0611, "several copies requested by one call");

struct cudadrv_host_func {
	struct call call;
	CUDA_HOST_FUNC_FIELDS;
} EVENT(cudadrv_host_func, 0x0612, "a host function queued in a stream");

struct cudadrv_prefetch {
	struct call call;
	CUDA_PREFETCH_FIELDS;
} EVENT(cudadrv_prefetch, 0x0613, "managed memory prefetched");

struct cudadrv_event {
	struct call call;
	CUDA_EVENT_FIELDS;
} EVENT(cudadrv_event, 0x0614, "an event created, queried or destroyed (--cudadrv=all)");

struct cudadrv_call {
	struct call call;
} EVENT(cudadrv_call, 0x0615, "any other call of the driver (--cudadrv=all)");

struct cudadrv_module {
	struct call call;
	u64 module UNIT(hex) DOC("CUmodule or CUlibrary loaded or unloaded; 0 if loading it failed");
} EVENT(cudadrv_module, 0x0616, "device code loaded or unloaded");

#define CUDADRV_NAME 1024 /* bytes of a kernel's name, with its NUL */

struct cudadrv_function {
	struct call call;
	u64 function UNIT(hex) DOC("CUfunction or CUkernel that was looked up; 0 if that failed");
	u64 module UNIT(hex) DOC("CUmodule or CUlibrary in which it was looked up; 0: the call does not name one");
	u64 kernel UNIT(hex) DOC("of cuKernelGetFunction: the CUkernel of the CUfunction, else 0");
	char name[] DOC("mangled name of the kernel, at most its first 1023 bytes; empty if `kernel` identifies it");
} EVENT(cudadrv_function, 0x0617, "a kernel looked up by its name, or its name queried");

struct cudadrv_map {
	struct call call;
	u64 address UNIT(hex) DOC("where it is mapped");
	u64 bytes UNIT(bytes) DOC("of the mapping");
	u64 handle UNIT(hex) DOC("of the memory (cudadrv_alloc.address); 0 when it is unmapped");
	u64 offset UNIT(bytes) DOC("in the memory");
} EVENT(cudadrv_map, 0x0618, "physical memory mapped to device addresses or unmapped");

struct cudadrv_context {
	struct call call;
	u64 context UNIT(hex)
		DOC("created, retained or destroyed; 0: that failed, or it is the primary one of a device");
	u32 api_flags DOC("as passed");
	s32 device DOC("device number; -1: the call does not name one");
} EVENT(cudadrv_context, 0x0619, "a context created, retained, released, reset or destroyed");
