/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields that events of the CUDA runtime (cuda.h) and of the driver (probes/cudadrv/cudadrv.h) have in common. */
#pragma once

#include "core/event.h"
#include "core/gil_held.h"

/* clang-format off */

#define CUDA_STACK_FIELDS \
	u32 stack UNIT(stack) DOC("Python stack at the call, with --cuda=stacks; 0: not known"); \
	enum gil_held gil DOC("did the thread hold its GIL, with --cuda=stacks")

#define CUDA_HOST_REGISTER_FIELDS \
	u64 address UNIT(hex) DOC("of the host memory"); \
	u64 bytes UNIT(bytes) DOC("0 when it is unregistered"); \
	u32 api_flags DOC("as passed")

#define CUDA_POOL_FIELDS \
	u64 pool UNIT(hex) DOC("memory pool; 0 if creating it failed"); \
	u64 bytes UNIT(bytes) DOC("of a trim: the bytes that the pool may retain")

#define CUDA_STREAM_WAIT_FIELDS \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 event_handle UNIT(hex) DOC("event that the stream waits for"); \
	u32 api_flags DOC("as passed")

#define CUDA_EVENT_RECORD_FIELDS \
	u64 event_handle UNIT(hex) DOC("event"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u32 api_flags DOC("as passed")

#define CUDA_EVENT_ELAPSED_FIELDS \
	u64 from_event UNIT(hex) DOC("event"); \
	u64 to_event UNIT(hex) DOC("event"); \
	float elapsed_ms UNIT(ms) DOC("device time between the two; 0 if that failed")

#define CUDA_STREAM_FIELDS \
	u64 stream UNIT(hex) DOC("stream created or destroyed; 0 if creating it failed"); \
	u32 api_flags DOC("as passed"); \
	s32 priority DOC("as passed")

#define CUDA_GRAPH_LAUNCH_FIELDS \
	u64 exec UNIT(hex) DOC("executable graph"); \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	CUDA_STACK_FIELDS

#define CUDA_GRAPH_FIELDS \
	u64 graph UNIT(hex) DOC("graph that is created, read or destroyed"); \
	u64 exec UNIT(hex) DOC("executable graph that is created, updated or destroyed; 0 if creating it failed")

#define CUDA_COPY_BATCH_FIELDS \
	u64 copies DOC("copies in the batch"); \
	u64 bytes UNIT(bytes) DOC("of the first 31 copies together; 0 for 3D batches")

#define CUDA_HOST_FUNC_FIELDS \
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream"); \
	u64 function UNIT(hex) DOC("address"); \
	u64 data UNIT(hex) DOC("its argument")

#define CUDA_PREFETCH_FIELDS \
	u64 address UNIT(hex) DOC("managed memory"); \
	u64 bytes UNIT(bytes) DOC("requested")

#define CUDA_EVENT_FIELDS \
	u64 event_handle UNIT(hex) DOC("event created, queried or destroyed; 0 if creating it failed"); \
	u32 api_flags DOC("as passed")

/* clang-format on */
