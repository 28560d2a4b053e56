/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the CUDA runtime library. Sources: cuda_runtime_api.h and driver_types.h of CUDA 11.8 to 13.5.
 *
 * The event's probe says which function was called. The variants of a function for a thread's default stream (_ptsz,
 * _ptds) are separate functions.
 */
#pragma once

#include "core/event.h"
#include "core/gil_held.h"
#include "probes/cuda/cuda_fields.h"

FAMILY(cuda, 0x03, FAMILY_DEFAULT, "calls of the CUDA runtime (libcudart)");

/* enum cudaMemcpyKind */
enum cuda_copy_kind {
	CUDA_COPY_HTOH = 0,
	CUDA_COPY_HTOD = 1,
	CUDA_COPY_DTOH = 2,
	CUDA_COPY_DTOD = 3,
	CUDA_COPY_DEFAULT = 4,
};

struct cuda_copy {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested; in elements where a 3D copy names an array");
	u64 dst UNIT(hex) DOC("destination: address, array or symbol");
	u64 src UNIT(hex) DOC("source: address, array or symbol");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	enum cuda_copy_kind kind;
	CUDA_STACK_FIELDS;
} EVENT(cuda_copy, 0x0301, "a copy requested through the runtime");

struct cuda_launch {
	struct call call;
	u64 function UNIT(hex) DOC("host function that identifies the kernel: its address");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 shared_memory UNIT(bytes) DOC("dynamic shared memory of a block");
	u32 grid_x DOC("blocks");
	u32 grid_y DOC("blocks");
	u32 grid_z DOC("blocks");
	u32 block_x DOC("threads of a block");
	u32 block_y DOC("threads of a block");
	u32 block_z DOC("threads of a block");
	CUDA_STACK_FIELDS;
} EVENT(cuda_launch, 0x0302, "a kernel launch; of a launch on several devices, that on the first device");

struct cuda_set {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested");
	u64 dst UNIT(hex) DOC("destination address");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	s32 value DOC("written to each byte");
	CUDA_STACK_FIELDS;
} EVENT(cuda_set, 0x0303, "memory set to a value");

enum cuda_memory {
	CUDA_MEMORY_DEVICE = 0,
	CUDA_MEMORY_HOST = 1,
	CUDA_MEMORY_MANAGED = 2,
	CUDA_MEMORY_POOL = 3,
	CUDA_MEMORY_ARRAY = 4,
	CUDA_MEMORY_PHYSICAL = 5, /* only of the driver: cuMemCreate */
};

struct cuda_alloc {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested, without the padding of the pitch");
	u64 address UNIT(hex) DOC("what was allocated: address or array; 0 if that failed");
	u64 stream UNIT(hex) DOC("of an allocation in stream order");
	u64 pool UNIT(hex) DOC("memory pool if one was named");
	u32 api_flags DOC("as passed");
	enum cuda_memory memory;
	CUDA_STACK_FIELDS;
} EVENT(cuda_alloc, 0x0304, "memory allocated");

struct cuda_free {
	struct call call;
	u64 address UNIT(hex) DOC("address or array");
	u64 stream UNIT(hex) DOC("of a free in stream order");
	enum cuda_memory memory;
	CUDA_STACK_FIELDS;
} EVENT(cuda_free, 0x0305, "memory freed");

struct cuda_host_register {
	struct call call;
	CUDA_HOST_REGISTER_FIELDS;
} EVENT(cuda_host_register, 0x0306, "host memory pinned or unpinned");

struct cuda_pool {
	struct call call;
	CUDA_POOL_FIELDS;
} EVENT(cuda_pool, 0x0307, "a memory pool created, destroyed or trimmed");

enum cuda_sync_scope {
	CUDA_SYNC_DEVICE = 0,
	CUDA_SYNC_STREAM = 1,
	CUDA_SYNC_EVENT = 2,
	CUDA_SYNC_CONTEXT = 3,
};

struct cuda_sync {
	struct call call;
	u64 handle UNIT(hex) DOC("stream, event or execution context waited for");
	enum cuda_sync_scope scope;
	CUDA_STACK_FIELDS;
} EVENT(cuda_sync, 0x0308, "the thread waits for the device");

struct cuda_stream_wait {
	struct call call;
	CUDA_STREAM_WAIT_FIELDS;
} EVENT(cuda_stream_wait, 0x0309, "a stream has to wait for an event");

struct cuda_event_record {
	struct call call;
	CUDA_EVENT_RECORD_FIELDS;
} EVENT(cuda_event_record, 0x030a, "an event recorded in a stream");

struct cuda_event_elapsed {
	struct call call;
	CUDA_EVENT_ELAPSED_FIELDS;
} EVENT(cuda_event_elapsed, 0x030b, "the time between two events queried");

struct cuda_stream {
	struct call call;
	CUDA_STREAM_FIELDS;
} EVENT(cuda_stream, 0x030c, "a stream created or destroyed");

struct cuda_graph_launch {
	struct call call;
	CUDA_GRAPH_LAUNCH_FIELDS;
} EVENT(cuda_graph_launch, 0x030d, "a graph launched or uploaded");

struct cuda_graph {
	struct call call;
	CUDA_GRAPH_FIELDS;
} EVENT(cuda_graph, 0x030e, "a graph created, instantiated, updated or destroyed");

struct cuda_capture {
	struct call call;
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 graph UNIT(hex) DOC("graph captured to, or what the capture's end returned");
	u32 mode DOC("cudaStreamCaptureMode of a begin");
} EVENT(cuda_capture, 0x030f, "stream capture begun or ended");

struct cuda_copy_peer {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested; in elements where a 3D copy names an array");
	u64 dst UNIT(hex) DOC("destination: address or array");
	u64 src UNIT(hex) DOC("source: address or array");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	s32 dst_device DOC("device number");
	s32 src_device DOC("device number");
} EVENT(cuda_copy_peer, 0x0310, "a copy between two named devices");

struct cuda_copy_batch {
	struct call call;
	CUDA_COPY_BATCH_FIELDS;
} EVENT(cuda_copy_batch, 0x0311, "several copies requested by one call");

struct cuda_host_func {
	struct call call;
	CUDA_HOST_FUNC_FIELDS;
} EVENT(cuda_host_func, 0x0312, "a host function queued in a stream");

struct cuda_prefetch {
	struct call call;
	CUDA_PREFETCH_FIELDS;
} EVENT(cuda_prefetch, 0x0313, "managed memory prefetched");

struct cuda_event {
	struct call call;
	CUDA_EVENT_FIELDS;
} EVENT(cuda_event, 0x0314, "an event created, queried or destroyed (--cuda=all)");

struct cuda_call {
	struct call call;
} EVENT(cuda_call, 0x0315, "any other call of the runtime (--cuda=all)");
