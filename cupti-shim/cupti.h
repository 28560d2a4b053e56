/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of CUPTI that the shim uses, declared here because NVIDIA's headers may be missing where it is built.
 * Layouts as in cupti_activity.h of CUDA 11.8 to 13.5: a kind's record has only ever grown at its end. So the oldest
 * version has what is declared here, and later members are read only from a CUPTI that is new enough.
 * tests/fakes/cuda/layouts.c compares this file with NVIDIA's headers field by field.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion */
#define CUPTI_IN_12_0 18 /* 11.8: 17 */
#define CUPTI_IN_12_8 26
#define CUPTI_IN_13_0 130000
#define CUPTI_IN_13_1 130100

enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_MAX_LIMIT_REACHED = 12, /* no more records */
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

enum cupti_kind {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_DEVICE = 8,
	KIND_CONTEXT = 9,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_MEMCPY2 = 22,
	KIND_STREAM = 37,
	KIND_SYNCHRONIZATION = 38,
	KIND_INTERNAL_LAUNCH_API = 48,
	KIND_MEMORY2 = 49,
	KIND_MEMORY_POOL = 50,
	KIND_GRAPH_TRACE = 51,
};

#define FLUSH_FORCED	 1
#define THREAD_ID_SYSTEM 1

struct cupti_activity {
	uint32_t kind;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityKernel8 (11.8) to 13 (13.5) */
struct cupti_kernel {
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout[3];
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_total_2;
	/* since 12 */
	uint32_t cluster_max, cluster_active;
	/* since 13.0 */
	uint8_t device_launched, pad3[7];
	/* since 13.1 */
	int32_t priority;
	uint32_t pad4;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityMemcpy5 (11.8) to 7 (13.5) */
struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, from_kind, to_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
	uint32_t pad2;
	/* since 12.8 */
	uint64_t copies;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityMemcpyPtoP4, kind MEMCPY2 */
struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind, from_kind, to_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context, correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityMemset4 to 5 */
struct cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivitySynchronization to 2 */
struct cupti_sync {
	uint32_t kind;
	uint32_t type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
	/* since 12.8 */
	uint64_t event_sync;
	uint32_t result;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityMemory3 (11.8) to 4, kind MEMORY2 */
struct cupti_memory {
	uint32_t kind;
	uint32_t operation, memory_kind, correlation;
	uint64_t address, bytes, timestamp, pc;
	uint32_t process, device, context, stream;
	const char *name;
	uint32_t asynchronous, pad1;
	uint32_t pool_type, pad2;
	uint64_t pool_address, pool_threshold, pool_size, pool_used;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityMemoryPool2 (11.8) to 3 */
struct cupti_pool {
	uint32_t kind;
	uint32_t operation, type, correlation, process, device;
	uint64_t kept;
	uint64_t address, size, threshold, timestamp;
	uint64_t used;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityGraphTrace (11.8) to 2 */
struct cupti_graph {
	uint32_t kind;
	uint32_t correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	/* since 12.0 */
	uint32_t end_device, end_context;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityAPI, kinds DRIVER and RUNTIME */
struct cupti_api {
	uint32_t kind;
	uint32_t function;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityDevice4 (11.8) to 6 */
struct cupti_device {
	uint32_t kind;
	uint32_t flags;
	uint64_t bandwidth, memory;
	uint32_t constant_memory, l2_cache, warp_size, clock_khz, copy_engines, multiprocessors, max_ipc;
	uint32_t warps_per_sm, blocks_per_sm, shared_per_sm, registers_per_sm, registers_per_block;
	uint32_t shared_per_block, threads_per_block, block_max[3], grid_max[3];
	uint32_t major, minor, id, ecc;
	uint8_t uuid[16];
	const char *name;
	uint8_t visible, mig;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityContext to 4 */
struct cupti_context {
	uint32_t kind;
	uint32_t context, device;
	uint16_t api, null_stream;
} __attribute__((packed, aligned(8)));

/* CUpti_ActivityStream */
struct cupti_stream {
	uint32_t kind;
	uint32_t context, stream, priority, flag, correlation;
} __attribute__((packed, aligned(8)));

/* CUpti_SubscriberParams of 13.5; an older CUPTI refuses this size, and cuptiSubscribe is used */
struct cupti_subscriber_params {
	size_t size;
	const char *name;
	char *other_name;
	size_t other_size;
	uint8_t many, pad[7];
};

typedef void *cupti_subscriber;
typedef void (*cupti_callback)(void *user, int domain, uint32_t id, const void *data);
typedef void (*cupti_requested)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* X(required, name in this struct, rest of CUPTI's name, arguments) */
#define CUPTI_FUNCTIONS(X)                                                                                          \
	X(1, get_version, GetVersion, (uint32_t * version))                                                         \
	X(1, get_timestamp, GetTimestamp, (uint64_t * timestamp))                                                   \
	X(1, subscribe, Subscribe, (cupti_subscriber * subscriber, cupti_callback fn, void *user))                  \
	X(0, subscribe_v2, Subscribe_v2,                                                                            \
	  (cupti_subscriber * subscriber, cupti_callback fn, void *user, struct cupti_subscriber_params *params))   \
	X(1, unsubscribe, Unsubscribe, (cupti_subscriber subscriber))                                               \
	X(1, register_callbacks, ActivityRegisterCallbacks, (cupti_requested requested, cupti_completed completed)) \
	X(1, enable, ActivityEnable, (uint32_t kind))                                                               \
	X(0, enable_and_dump, ActivityEnableAndDump, (uint32_t kind))                                               \
	X(1, disable, ActivityDisable, (uint32_t kind))                                                             \
	X(1, flush, ActivityFlushAll, (uint32_t flag))                                                              \
	X(1, next_record, ActivityGetNextRecord, (uint8_t * buffer, size_t valid, struct cupti_activity * *record)) \
	X(1, dropped, ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))              \
	X(0, enable_driver_api, ActivityEnableDriverApi, (uint32_t function, uint8_t enable))                       \
	X(0, enable_runtime_api, ActivityEnableRuntimeApi, (uint32_t function, uint8_t enable))                     \
	X(0, set_thread_id_type, SetThreadIdType, (uint32_t type))                                                  \
	X(0, get_thread_id_type, GetThreadIdType, (uint32_t * type))                                                \
	X(0, result_string, GetResultString, (uint32_t result, const char **text))

struct cupti {
	void *library;
	uint32_t version;
#define CUPTI_POINTER(required, ours, theirs, args) uint32_t(*ours) args;
	CUPTI_FUNCTIONS(CUPTI_POINTER)
};

/* In find.c. Returns 0; -EAGAIN: the process has not loaded libcuda (yet); -ENOENT with the reason in why. */
int cupti__find(struct cupti *c, char *why, size_t len);
