/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the CUDA runtime (cuda.h) and of the driver (probes/cudadrv/cudadrv.h), which differ in few fields.
 * Sources: cuda_runtime_api.h, driver_types.h and cuda.h of CUDA 11.8 to 13.5.
 *
 * The event's probe says which function was called. Other versions of a function (_v2) and the variants for a
 * thread's default stream (_ptsz, _ptds) are separate functions.
 */
#pragma once

#include "core/event.h"
#include "core/gil_held.h"

/* enum cudaMemcpyKind */
enum cuda_copy_kind {
	CUDA_COPY_HTOH = 0,
	CUDA_COPY_HTOD = 1,
	CUDA_COPY_DTOH = 2,
	CUDA_COPY_DTOD = 3,
	CUDA_COPY_DEFAULT = 4,
};

enum cuda_memory {
	CUDA_MEMORY_DEVICE = 0,
	CUDA_MEMORY_HOST = 1,
	CUDA_MEMORY_MANAGED = 2,
	CUDA_MEMORY_POOL = 3,
	CUDA_MEMORY_ARRAY = 4,
	CUDA_MEMORY_PHYSICAL = 5, /* only of the driver: cuMemCreate */
};

enum cuda_sync_scope {
	CUDA_SYNC_DEVICE = 0,
	CUDA_SYNC_STREAM = 1,
	CUDA_SYNC_EVENT = 2,
	CUDA_SYNC_CONTEXT = 3,
};

/* clang-format off */

/* What differs between the two families */
#define CUDA_OF_cuda(runtime, driver) runtime
#define CUDA_OF_cudadrv(runtime, driver) driver

#define CUDA_STACK_FIELDS \
	u32 stack UNIT(stack) DOC("Python stack at the call, with --cuda=stacks; 0: not known"); \
	enum gil_held gil DOC("did the thread hold its GIL, with --cuda=stacks")

/* high: the family's id, the high byte of the events' ids */
#define CUDA_EVENTS(family, high) \
struct family##_copy { \
	struct call call; \
	u64 bytes UNIT(bytes) DOC("requested" CUDA_OF_##family("; in elements where a 3D copy names an array", "")); \
	u64 dst UNIT(hex) DOC("destination: " CUDA_OF_##family("address, array or symbol", "address or array")); \
	u64 src UNIT(hex) DOC("source: " CUDA_OF_##family("address, array or symbol", "address or array")); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	enum cuda_copy_kind kind CUDA_OF_##family(, \
		DOC("as the function's name states; of a 2D or 3D copy, as its memory types state")); \
	CUDA_STACK_FIELDS; \
} EVENT(family##_copy, high##01, "a copy requested through the " CUDA_OF_##family("runtime", "driver")); \
\
struct family##_launch { \
	struct call call; \
	u64 function UNIT(hex) \
		DOC(CUDA_OF_##family("host function that identifies the kernel: its address", \
				     "CUfunction or CUkernel: see cudadrv_function for its name")); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 shared_memory UNIT(bytes) DOC("dynamic shared memory of a block"); \
	u32 grid_x DOC("blocks"); \
	u32 grid_y DOC("blocks"); \
	u32 grid_z DOC("blocks"); \
	u32 block_x DOC("threads of a block"); \
	u32 block_y DOC("threads of a block"); \
	u32 block_z DOC("threads of a block"); \
	CUDA_STACK_FIELDS; \
} EVENT(family##_launch, high##02, "a kernel launch; of a launch on several devices, that on the first device"); \
\
struct family##_set { \
	struct call call; \
	u64 bytes UNIT(bytes) DOC("requested"); \
	u64 dst UNIT(hex) DOC("destination address"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	s32 value DOC("written to each " CUDA_OF_##family("byte", "element")); \
	CUDA_STACK_FIELDS; \
	CUDA_OF_##family(, u32 element UNIT(bytes) DOC("size of an element: 1, 2 or 4");) \
} EVENT(family##_set, high##03, "memory set to a value"); \
\
struct family##_alloc { \
	struct call call; \
	u64 bytes UNIT(bytes) DOC("requested, without the padding of the pitch"); \
	u64 address UNIT(hex) \
		DOC("what was allocated: " \
		    CUDA_OF_##family("address or array", "address, array or, of cuMemCreate, handle") \
		    "; 0 if that failed"); \
	u64 stream UNIT(hex) DOC("of an allocation in stream order"); \
	u64 pool UNIT(hex) DOC("memory pool if one was named"); \
	u32 api_flags DOC("as passed"); \
	enum cuda_memory memory; \
	CUDA_STACK_FIELDS; \
	CUDA_OF_##family(, s32 device DOC("of cuMemCreate: the device or NUMA node that it names; " \
					   "else -1: the device of the current context");) \
} EVENT(family##_alloc, high##04, "memory allocated"); \
\
struct family##_free { \
	struct call call; \
	u64 address UNIT(hex) DOC(CUDA_OF_##family("address or array", "address, array or, of cuMemRelease, handle")); \
	u64 stream UNIT(hex) DOC("of a free in stream order"); \
	enum cuda_memory memory; \
	CUDA_STACK_FIELDS; \
} EVENT(family##_free, high##05, "memory freed"); \
\
struct family##_host_register { \
	struct call call; \
	u64 address UNIT(hex) DOC("of the host memory"); \
	u64 bytes UNIT(bytes) DOC("0 when it is unregistered"); \
	u32 api_flags DOC("as passed"); \
} EVENT(family##_host_register, high##06, "host memory pinned or unpinned"); \
\
struct family##_pool { \
	struct call call; \
	u64 pool UNIT(hex) DOC("memory pool; 0 if creating it failed"); \
	u64 bytes UNIT(bytes) DOC("of a trim: the bytes that the pool may retain"); \
} EVENT(family##_pool, high##07, "a memory pool created, destroyed or trimmed"); \
\
struct family##_sync { \
	struct call call; \
	u64 handle UNIT(hex) \
		DOC("stream, event or " CUDA_OF_##family("execution context waited for", \
							 "context waited for; 0 of a context: the current one")); \
	enum cuda_sync_scope scope; \
	CUDA_STACK_FIELDS; \
} EVENT(family##_sync, high##08, "the thread waits for the device"); \
\
struct family##_stream_wait { \
	struct call call; \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 event_handle UNIT(hex) DOC("event that the stream waits for"); \
	u32 api_flags DOC("as passed"); \
} EVENT(family##_stream_wait, high##09, "a stream has to wait for an event"); \
\
struct family##_event_record { \
	struct call call; \
	u64 event_handle UNIT(hex) DOC("event"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u32 api_flags DOC("as passed"); \
} EVENT(family##_event_record, high##0a, "an event recorded in a stream"); \
\
struct family##_event_elapsed { \
	struct call call; \
	u64 from_event UNIT(hex) DOC("event"); \
	u64 to_event UNIT(hex) DOC("event"); \
	float elapsed_ms UNIT(ms) DOC("device time between the two; 0 if that failed"); \
} EVENT(family##_event_elapsed, high##0b, "the time between two events queried"); \
\
struct family##_stream { \
	struct call call; \
	u64 stream UNIT(hex) DOC("stream created or destroyed; 0 if creating it failed"); \
	u32 api_flags DOC("as passed"); \
	s32 priority DOC("as passed"); \
} EVENT(family##_stream, high##0c, "a stream created or destroyed"); \
\
struct family##_graph_launch { \
	struct call call; \
	u64 exec UNIT(hex) DOC("executable graph"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	CUDA_STACK_FIELDS; \
} EVENT(family##_graph_launch, high##0d, "a graph launched or uploaded"); \
\
struct family##_graph { \
	struct call call; \
	u64 graph UNIT(hex) DOC("graph that is created, read or destroyed"); \
	u64 exec UNIT(hex) \
		DOC("executable graph that is created, updated or destroyed; 0 if creating it failed"); \
} EVENT(family##_graph, high##0e, "a graph created, instantiated, updated or destroyed"); \
\
struct family##_capture { \
	struct call call; \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 graph UNIT(hex) DOC("graph captured to, or what the capture's end returned"); \
	u32 mode DOC(CUDA_OF_##family("cudaStreamCaptureMode", "CUstreamCaptureMode") " of a begin"); \
} EVENT(family##_capture, high##0f, "stream capture begun or ended"); \
\
struct family##_copy_peer { \
	struct call call; \
	u64 bytes UNIT(bytes) DOC("requested" CUDA_OF_##family("; in elements where a 3D copy names an array", "")); \
	u64 dst UNIT(hex) DOC("destination: address or array"); \
	u64 src UNIT(hex) DOC("source: address or array"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	CUDA_OF_##family(s32 dst_device DOC("device number"), \
			 u64 dst_context UNIT(hex) DOC("context of the destination")); \
	CUDA_OF_##family(s32 src_device DOC("device number"), u64 src_context UNIT(hex) DOC("context of the source")); \
} EVENT(family##_copy_peer, high##10, "a copy between two named " CUDA_OF_##family("devices", "contexts")); \
\
struct family##_copy_batch { \
	struct call call; \
	u64 copies DOC("copies in the batch"); \
	u64 bytes UNIT(bytes) DOC("of the first 31 copies together; 0 for 3D batches"); \
} EVENT(family##_copy_batch, high##11, "several copies requested by one call"); \
\
struct family##_host_func { \
	struct call call; \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 function UNIT(hex) DOC("address"); \
	u64 data UNIT(hex) DOC("its argument"); \
} EVENT(family##_host_func, high##12, "a host function queued in a stream"); \
\
struct family##_prefetch { \
	struct call call; \
	u64 address UNIT(hex) DOC("managed memory"); \
	u64 bytes UNIT(bytes) DOC("requested"); \
} EVENT(family##_prefetch, high##13, "managed memory prefetched"); \
\
struct family##_event { \
	struct call call; \
	u64 event_handle UNIT(hex) DOC("event created, queried or destroyed; 0 if creating it failed"); \
	u32 api_flags DOC("as passed"); \
} EVENT(family##_event, high##14, "an event created, queried or destroyed (--" #family "=all)"); \
\
struct family##_call { \
	struct call call; \
} EVENT(family##_call, high##15, \
	"any other call of the " CUDA_OF_##family("runtime", "driver") " (--" #family "=all)")

/* clang-format on */
