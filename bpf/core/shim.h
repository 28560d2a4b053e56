/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between sonde and the shim in a target (cupti-shim/): the batches that the shim passes to its probe
 * site, and how recording is switched on. A shim may be years older than sonde, so this interface is append-only: a
 * kind keeps its number, a body only grows at its end, and a reader uses only those members of a body that both sides
 * know.
 *
 * The probe site is sonde_cupti_records(batch, bytes), a function that does nothing. Its argument is a struct
 * shim_batch followed by its records, each a struct shim_record and the body of its kind, padded to a multiple of 8
 * bytes. Times are CLOCK_MONOTONIC as the target sees it. docs/gpu.md lists the sources of the fields' meanings.
 */
#pragma once

#include "event.h"
#include "ring.h"

#define SHIM_MAGIC	   0x65646e73 /* "snde" */
#define SHIM_VERSION	   1
#define SHIM_BATCH_MAX	   16384 /* bytes, with the header */
#define SHIM_BATCH_RECORDS 128
#define SHIM_RECORD_MAX	   4000 /* bytes, with the header; a longer name is cut */

/*
 * Each group of records is switched on by semaphores of its own. sonde_cupti_control_NAME contains the addresses at
 * which a probe raises them, sonde_cupti_semaphore_NAME the semaphores, one for each of SHIM_SLOTS tracers, because
 * the kernel counts several tracers at one address as one. A tracer takes any free slot.
 */
/* the page of the semaphores begins with this; a semaphore elsewhere is never raised */
#define SHIM_SEMAPHORES	     "sonde-semaphores"
#define SHIM_SLOTS	     8
#define SHIM_CONTROL_BYTES   16 /* from one slot to the next */
#define SHIM_SEMAPHORE_BYTES 8
#define SHIM_GROUPS(X)                                                                                   \
	X(KERNELS, kernels) /* kernels, which may run concurrently */                                    \
	X(COPIES, copies) /* copies and sets */                                                          \
	X(SYNC, sync) /* waits of the host and between streams */                                        \
	X(MEMORY, memory) /* allocations and pools */                                                    \
	X(GRAPHS, graphs) /* graphs as a whole, without records of their nodes */                        \
	X(NODES, nodes) /* each node of a graph, even if another tracer requests GRAPHS */               \
	X(CALLS, calls) /* launch functions of libcudart and libcuda, which relate kernels to threads */ \
	X(NVTX, nvtx) /* ranges and marks of NVTX */                                                     \
	X(RANGES, ranges) /* the begin and end of each range is passed to sonde_cupti_range at once */   \
	X(FUNCTIONS, functions) /* calls of Python functions */                                          \
	X(TORCH, torch) /* PyTorch's operators that Python or autograd calls, backward nodes, ranges */  \
	X(TORCH_INNER, torch_inner) /* operators that operators call, too */                             \
	X(TORCH_EVERY, torch_every) /* every step, whatever that costs */
#define SHIM_GROUP_ENUM(up, low) SHIM_##up,
enum shim_group { SHIM_GROUPS(SHIM_GROUP_ENUM) SHIM_GROUP_COUNT };
#define SHIM_CUPTI_GROUPS ((1U << SHIM_NVTX) - 1) /* those that CUPTI records, as bits */

struct shim_batch {
	u32 magic;
	u16 version;
	u16 records;
	u32 bytes; /* with this header */
	u32 pad;
	u64 number; /* number of the batch in this process, from 1 */
};

/* A batch of a thread's lane (cupti-shim/lanes.c), whose records are not behind its head but at an address. */
struct shim_lane_batch {
	struct shim_batch batch;
	u64 at;
};

/* A batch on its way from BPF to the worker, a raw record (core/stack.h) with the id RAW_SECOND_OF() its family. */
struct shim_raw {
	struct event event; /* time: when it was handed over; the thread that did so */
	u64 started; /* CLOCK_MONOTONIC, ns: when the process started */
	s64 shift; /* offset of CLOCK_MONOTONIC in the process's time namespace */
	u32 own_tid; /* of a lane: the thread's number in its own pid namespace; else 0 */
	u32 records;
	u8 data[];
};
_Static_assert(sizeof(struct shim_raw) + SHIM_BATCH_MAX <= RING_RECORD_MAX, "a ring has room for a batch");

/* How the bodies of all kinds of records begin that say how many records of a lane were lost, and why. */
struct shim_lost {
	u64 records;
	u32 reason; /* of the family */
	u32 pad;
};

#define SHIM_STARTED_BEFORE 0x8000 /* added to a kind: the span began before the recording, at an unknown time */

struct shim_record {
	u16 size; /* with this header */
	u16 kind; /* enum shim_kind, or that of another family */
	u32 tid; /* 0: no thread */
	u64 start; /* 0: unknown */
	u64 end; /* the end, or the time of an event without duration; 0: it had not ended when tracing stopped */
};

/* Equal to the low byte of the event's id. */
enum shim_kind {
	SHIM_KERNEL = 1,
	SHIM_MEMCPY,
	SHIM_MEMSET,
	SHIM_SYNCHRONIZATION,
	SHIM_GRAPH,
	SHIM_ALLOCATION,
	SHIM_POOL,
	SHIM_CALL,
	SHIM_DEVICE,
	SHIM_CONTEXT,
	SHIM_STREAM,
	SHIM_NAME,
	SHIM_CLOCK,
	SHIM_DROPPED,
	SHIM_STATE,
	SHIM_KINDS
};

struct shim_kernel {
	u64 name UNIT(hex) DOC("of event gpu_name");
	u64 graph_node DOC("id of the node, 0: launched by itself");
	u32 device;
	u32 context;
	u32 stream DOC("CUPTI's id of the stream, see event gpu_stream");
	u32 correlation DOC("of the launch: see event gpu_call; all nodes of a graph's launch share it");
	u32 graph DOC("id of the executable graph, 0: none");
	u32 grid_x, grid_y, grid_z;
	u32 block_x, block_y, block_z;
	u32 cluster_x, cluster_y, cluster_z;
	u32 registers DOC("per thread");
	u32 static_shared UNIT(bytes) DOC("shared memory of a block");
	u32 dynamic_shared UNIT(bytes) DOC("shared memory of a block");
	u32 local_memory UNIT(bytes) DOC("per thread");
	u32 channel DOC("hardware channel");
	s32 priority DOC("of the stream, as CUPTI 13.1 and later report it; else 0");
	u8 launch_type DOC("CUpti_ActivityLaunchType: 0 regular, 1 cooperative");
	u8 device_launched DOC("1: by the device itself");
	u8 channel_type;
	u8 pad;
};

/* CUpti_ActivityMemcpyKind */
enum gpu_copy_kind {
	GPU_COPY_UNKNOWN,
	GPU_COPY_HTOD,
	GPU_COPY_DTOH,
	GPU_COPY_HTOA,
	GPU_COPY_ATOH,
	GPU_COPY_ATOA,
	GPU_COPY_ATOD,
	GPU_COPY_DTOA,
	GPU_COPY_DTOD,
	GPU_COPY_HTOH,
	GPU_COPY_PTOP,
};

/* CUpti_ActivityMemoryKind */
enum gpu_memory_kind {
	GPU_MEMORY_UNKNOWN,
	GPU_MEMORY_PAGEABLE,
	GPU_MEMORY_PINNED,
	GPU_MEMORY_DEVICE,
	GPU_MEMORY_ARRAY,
	GPU_MEMORY_MANAGED,
	GPU_MEMORY_DEVICE_STATIC,
	GPU_MEMORY_MANAGED_STATIC,
};

struct shim_memcpy {
	u64 bytes UNIT(bytes);
	u64 graph_node DOC("id of the node, 0: none");
	u64 copies DOC("of a batch of copies: how many this record represents; 0: not known");
	u32 device, context, stream, correlation;
	u32 graph DOC("id of the executable graph, 0: none");
	u32 channel DOC("hardware channel");
	enum gpu_copy_kind kind;
	enum gpu_memory_kind from_memory;
	enum gpu_memory_kind to_memory;
	u32 from_device DOC("of a copy between devices");
	u32 to_device DOC("of a copy between devices");
	u8 asynchronous;
	u8 peer DOC("1: between devices");
	u8 channel_type;
	u8 pad;
};

struct shim_memset {
	u64 bytes UNIT(bytes);
	u64 graph_node DOC("id of the node, 0: none");
	u32 device, context, stream, correlation;
	u32 graph DOC("id of the executable graph, 0: none");
	u32 channel DOC("hardware channel");
	u32 value;
	enum gpu_memory_kind memory;
	u32 asynchronous;
	u32 channel_type;
};

/* CUpti_ActivitySynchronizationType */
enum gpu_sync_kind {
	GPU_SYNC_UNKNOWN,
	GPU_SYNC_EVENT,
	GPU_SYNC_STREAM_WAIT_EVENT,
	GPU_SYNC_STREAM,
	GPU_SYNC_CONTEXT,
};

struct shim_sync {
	u64 event_sync DOC("which record of the event is waited for, 0: not known");
	u32 context, stream, correlation;
	u32 cuda_event DOC("CUPTI's id of the event");
	enum gpu_sync_kind kind;
	u32 result DOC("what the call returned, as CUPTI 12.8 and later report it");
};

struct shim_graph {
	u32 device, context, stream, correlation;
	u32 graph DOC("id of the executable graph");
	u32 end_device, end_context, pad;
};

/* CUpti_ActivityMemoryOperationType */
enum gpu_memory_operation {
	GPU_MEMORY_INVALID,
	GPU_MEMORY_ALLOCATE,
	GPU_MEMORY_RELEASE,
};

struct shim_allocation {
	u64 address UNIT(hex);
	u64 bytes UNIT(bytes);
	u64 pool UNIT(hex) DOC("address of the pool, 0: none");
	u64 pool_size UNIT(bytes);
	u64 pool_used UNIT(bytes);
	u32 device, context, stream, correlation;
	enum gpu_memory_operation operation;
	enum gpu_memory_kind memory;
	u32 asynchronous;
	u32 pad;
};

struct shim_pool {
	u64 address UNIT(hex);
	u64 pool_size UNIT(bytes);
	u64 pool_used UNIT(bytes) DOC("as CUPTI 12 and later report it");
	u64 threshold UNIT(bytes) DOC("freed memory that the pool retains");
	u64 kept UNIT(bytes) DOC("of a trim: the bytes that the pool may retain");
	u32 device, correlation;
	u32 operation DOC("CUpti_ActivityMemoryPoolOperationType: 1 created, 2 destroyed, 3 trimmed");
	u32 pool_kind DOC("CUpti_ActivityMemoryPoolType: 1 of this process, 2 imported");
};

struct shim_call {
	u32 function DOC("CUPTI_DRIVER_TRACE_CBID_...: 307 cuLaunchKernel, 652 cuLaunchKernelEx, 514 cuGraphLaunch");
	u32 correlation;
	s32 result DOC("CUresult; of libcudart cudaError_t");
	u32 runtime DOC("1: a function of libcudart; function is CUPTI_RUNTIME_TRACE_CBID_...: 211 cudaLaunchKernel");
};

struct shim_device {
	u64 memory UNIT(bytes);
	u64 bandwidth DOC("kB/s between the device and its memory");
	u32 device;
	u32 major, minor DOC("compute capability");
	u32 multiprocessors;
	u32 clock_khz;
	u32 l2_cache UNIT(bytes);
	u32 warp_size;
	u32 warps_per_sm, blocks_per_sm, threads_per_block;
	u32 registers_per_sm;
	u32 shared_per_sm UNIT(bytes);
	u32 shared_per_block UNIT(bytes);
	u32 copy_engines;
	u32 mig DOC("1: a part of a device");
	u32 pad;
	u64 uuid_first UNIT(hex) DOC("the UUID's first 8 bytes");
	u64 uuid_last UNIT(hex) DOC("its last 8 bytes");
	char model[64];
};

struct shim_context {
	u32 context, device;
	u32 null_stream DOC("id of the default stream");
	u32 api DOC("CUpti_ActivityComputeApiKind: 1 CUDA, 2 MPS");
};

struct shim_stream {
	u32 context, stream;
	u32 priority;
	u32 stream_kind DOC("CUpti_ActivityStreamFlag: 1 default, 2 non-blocking, 3 null");
	u32 correlation, pad;
};

/* Followed by the text, padded with NULs. */
struct shim_name {
	u64 name UNIT(hex) DOC("hash of the text, by which kernels refer to it");
};

struct shim_clock {
	u64 device_time UNIT(ns) DOC("what cuptiGetTimestamp returned at `time`");
	u64 error UNIT(ns) DOC("upper bound, from readings of both clocks in the last seconds");
	s64 drift_ppb DOC("device clock against CLOCK_MONOTONIC over the last seconds, parts in 10^9; 0: the first");
	u32 reads DOC("readings of both clocks for this sample");
	u32 restarted DOC("1: the device's clock has jumped");
};

struct shim_dropped {
	u64 records DOC("lost in the shim since the last such event");
	u64 bytes UNIT(bytes) DOC("of CUPTI's buffers that were discarded although their records could not be counted");
	u32 reason DOC("1 no buffer was free, 2 CUPTI itself, 3 the record was invalid, 4 the process ended first");
	u32 pad;
};

enum gpu_shim_state {
	GPU_SHIM_STARTED = 1,
	GPU_SHIM_STOPPED, /* all records have been handed over */
	GPU_SHIM_REFUSED, /* the shim can't record; the text says why */
	GPU_SHIM_WAITING, /* the shim waits until CUDA is loaded */
	GPU_SHIM_LEFT, /* one of several tracers has detached, and has received all its records */
	GPU_SHIM_IMPAIRED, /* recording continues, but something is missing; the text says what */
};

/* Followed by a text, padded with NULs. */
struct shim_state {
	u64 told DOC("records handed over since it started");
	u64 version DOC("cuptiGetVersion: 18 to 28 in CUDA 12, 130000 and more in CUDA 13");
	enum gpu_shim_state state;
	u32 groups DOC(
		"of GPU work, as bits: 0 kernels, 1 copies, 2 synchronization, 3 memory, 4 graphs, 5 graphs' nodes, 6 calls");
};
