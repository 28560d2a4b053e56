// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cupti-shim/cupti.h against NVIDIA's headers: compiling this is the test. */
#include "cupti_double.h"
#include "cupti-shim/cupti.h"

#define SAME(ours, field, theirs, their_field)                                                          \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) &&                 \
			       sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->their_field), \
		       #ours "." #field " is not as in " #theirs)
#define AT(ours, field, theirs, their_field) \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), #ours "." #field " is elsewhere")

SAME(cupti_kernel, registers, KERNEL, registersPerThread);
SAME(cupti_kernel, start, KERNEL, start);
SAME(cupti_kernel, end, KERNEL, end);
SAME(cupti_kernel, device, KERNEL, deviceId);
SAME(cupti_kernel, context, KERNEL, contextId);
SAME(cupti_kernel, stream, KERNEL, streamId);
AT(cupti_kernel, grid, KERNEL, gridX);
AT(cupti_kernel, block, KERNEL, blockX);
SAME(cupti_kernel, static_shared, KERNEL, staticSharedMemory);
SAME(cupti_kernel, dynamic_shared, KERNEL, dynamicSharedMemory);
SAME(cupti_kernel, local_per_thread, KERNEL, localMemoryPerThread);
SAME(cupti_kernel, correlation, KERNEL, correlationId);
SAME(cupti_kernel, name, KERNEL, name);
SAME(cupti_kernel, launch_type, KERNEL, launchType);
SAME(cupti_kernel, graph_node, KERNEL, graphNodeId);
SAME(cupti_kernel, graph, KERNEL, graphId);
SAME(cupti_kernel, channel, KERNEL, channelID);
SAME(cupti_kernel, channel_type, KERNEL, channelType);
AT(cupti_kernel, cluster, KERNEL, clusterX);
#if CUPTI_API_VERSION >= 130100
SAME(cupti_kernel, device_launched, KERNEL, isDeviceLaunched);
SAME(cupti_kernel, priority, KERNEL, priority);
#endif

SAME(cupti_memcpy, copy_kind, MEMCPY, copyKind);
SAME(cupti_memcpy, from_kind, MEMCPY, srcKind);
SAME(cupti_memcpy, to_kind, MEMCPY, dstKind);
SAME(cupti_memcpy, flags, MEMCPY, flags);
SAME(cupti_memcpy, bytes, MEMCPY, bytes);
SAME(cupti_memcpy, start, MEMCPY, start);
SAME(cupti_memcpy, end, MEMCPY, end);
SAME(cupti_memcpy, device, MEMCPY, deviceId);
SAME(cupti_memcpy, context, MEMCPY, contextId);
SAME(cupti_memcpy, stream, MEMCPY, streamId);
SAME(cupti_memcpy, correlation, MEMCPY, correlationId);
SAME(cupti_memcpy, graph_node, MEMCPY, graphNodeId);
SAME(cupti_memcpy, graph, MEMCPY, graphId);
SAME(cupti_memcpy, channel, MEMCPY, channelID);
SAME(cupti_memcpy, channel_type, MEMCPY, channelType);
SAME(cupti_memcpy, copies, MEMCPY, copyCount);

SAME(cupti_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(cupti_memcpy_peer, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(cupti_memcpy_peer, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(cupti_memcpy_peer, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME(cupti_memcpy_peer, from_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(cupti_memcpy_peer, to_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME(cupti_memcpy_peer, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(cupti_memcpy_peer, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME(cupti_memcpy_peer, graph, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(cupti_memcpy_peer, channel_type, CUpti_ActivityMemcpyPtoP4, channelType);

SAME(cupti_memset, value, MEMSET, value);
SAME(cupti_memset, bytes, MEMSET, bytes);
SAME(cupti_memset, start, MEMSET, start);
SAME(cupti_memset, end, MEMSET, end);
SAME(cupti_memset, device, MEMSET, deviceId);
SAME(cupti_memset, correlation, MEMSET, correlationId);
SAME(cupti_memset, flags, MEMSET, flags);
SAME(cupti_memset, memory_kind, MEMSET, memoryKind);
SAME(cupti_memset, graph_node, MEMSET, graphNodeId);
SAME(cupti_memset, graph, MEMSET, graphId);
SAME(cupti_memset, channel, MEMSET, channelID);
SAME(cupti_memset, channel_type, MEMSET, channelType);

SAME(cupti_sync, type, CUpti_ActivitySynchronization2, type);
SAME(cupti_sync, start, CUpti_ActivitySynchronization2, start);
SAME(cupti_sync, end, CUpti_ActivitySynchronization2, end);
SAME(cupti_sync, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME(cupti_sync, context, CUpti_ActivitySynchronization2, contextId);
SAME(cupti_sync, stream, CUpti_ActivitySynchronization2, streamId);
SAME(cupti_sync, event, CUpti_ActivitySynchronization2, cudaEventId);
SAME(cupti_sync, event_sync, CUpti_ActivitySynchronization2, cudaEventSyncId);
SAME(cupti_sync, result, CUpti_ActivitySynchronization2, returnValue);

SAME(cupti_memory, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(cupti_memory, memory_kind, CUpti_ActivityMemory4, memoryKind);
SAME(cupti_memory, correlation, CUpti_ActivityMemory4, correlationId);
SAME(cupti_memory, address, CUpti_ActivityMemory4, address);
SAME(cupti_memory, bytes, CUpti_ActivityMemory4, bytes);
SAME(cupti_memory, timestamp, CUpti_ActivityMemory4, timestamp);
SAME(cupti_memory, device, CUpti_ActivityMemory4, deviceId);
SAME(cupti_memory, stream, CUpti_ActivityMemory4, streamId);
SAME(cupti_memory, asynchronous, CUpti_ActivityMemory4, isAsync);
SAME(cupti_memory, pool_address, CUpti_ActivityMemory4, memoryPoolConfig.address);
SAME(cupti_memory, pool_size, CUpti_ActivityMemory4, memoryPoolConfig.pool.size);
SAME(cupti_memory, pool_used, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize);

SAME(cupti_pool, operation, MEMORY_POOL, memoryPoolOperationType);
SAME(cupti_pool, type, MEMORY_POOL, memoryPoolType);
SAME(cupti_pool, correlation, MEMORY_POOL, correlationId);
SAME(cupti_pool, device, MEMORY_POOL, deviceId);
SAME(cupti_pool, kept, MEMORY_POOL, minBytesToKeep);
SAME(cupti_pool, address, MEMORY_POOL, address);
SAME(cupti_pool, size, MEMORY_POOL, size);
SAME(cupti_pool, threshold, MEMORY_POOL, releaseThreshold);
SAME(cupti_pool, timestamp, MEMORY_POOL, timestamp);
SAME(cupti_pool, used, MEMORY_POOL, utilizedSize);

SAME(cupti_graph, correlation, CUpti_ActivityGraphTrace2, correlationId);
SAME(cupti_graph, start, CUpti_ActivityGraphTrace2, start);
SAME(cupti_graph, end, CUpti_ActivityGraphTrace2, end);
SAME(cupti_graph, graph, CUpti_ActivityGraphTrace2, graphId);
SAME(cupti_graph, end_device, CUpti_ActivityGraphTrace2, endDeviceId);

SAME(cupti_api, function, CUpti_ActivityAPI, cbid);
SAME(cupti_api, start, CUpti_ActivityAPI, start);
SAME(cupti_api, end, CUpti_ActivityAPI, end);
SAME(cupti_api, thread, CUpti_ActivityAPI, threadId);
SAME(cupti_api, correlation, CUpti_ActivityAPI, correlationId);
SAME(cupti_api, result, CUpti_ActivityAPI, returnValue);

SAME(cupti_device, bandwidth, DEVICE, globalMemoryBandwidth);
SAME(cupti_device, memory, DEVICE, globalMemorySize);
SAME(cupti_device, l2_cache, DEVICE, l2CacheSize);
SAME(cupti_device, multiprocessors, DEVICE, numMultiprocessors);
SAME(cupti_device, threads_per_block, DEVICE, maxThreadsPerBlock);
SAME(cupti_device, major, DEVICE, computeCapabilityMajor);
SAME(cupti_device, id, DEVICE, id);
SAME(cupti_device, uuid, DEVICE, uuid);
SAME(cupti_device, name, DEVICE, name);
SAME(cupti_device, mig, DEVICE, isMigEnabled);

SAME(cupti_context, context, CONTEXT, contextId);
SAME(cupti_context, device, CONTEXT, deviceId);
SAME(cupti_context, api, CONTEXT, computeApiKind);
SAME(cupti_context, null_stream, CONTEXT, nullStreamId);

SAME(cupti_stream, context, CUpti_ActivityStream, contextId);
SAME(cupti_stream, stream, CUpti_ActivityStream, streamId);
SAME(cupti_stream, priority, CUpti_ActivityStream, priority);
SAME(cupti_stream, flag, CUpti_ActivityStream, flag);

#if CUPTI_API_VERSION >= 130000
SAME(cupti_subscriber_params, size, CUpti_SubscriberParams, structSize);
SAME(cupti_subscriber_params, other_name, CUpti_SubscriberParams, oldSubscriberName);
_Static_assert(sizeof(struct cupti_subscriber_params) == CUpti_SubscriberParams_STRUCT_SIZE, "subscriber's parameters");
#endif
