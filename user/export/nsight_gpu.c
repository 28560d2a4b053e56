// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nsight's tables of GPU work, the calls that launched it, devices, contexts and streams. */
#include "export/nsight.h"

#include <errno.h>
#include <string.h>

#include "core/shim.h"

#define WORK	    "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid "
#define WORK_FILLED "start,end,deviceId,contextId,streamId,correlationId,globalPid,"
#define WORK_VALUES(n, w)                                                                                           \
	N_TIME((w)->start), N_TIME((w)->end), N_NUMBER((w)->device), N_NUMBER((w)->context), N_NUMBER((w)->stream), \
		N_NUMBER((w)->correlation), N_PROCESS(n, (w)->pid)

static const struct nsight_table kernels = {
	"CUPTI_ACTIVITY_KIND_KERNEL",
	WORK "demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! "
	     "blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! "
	     "gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone "
	     "qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize "
	     "maxActiveClusters sharedMemoryRequestedPercentage tensorSizeMinusOneElements:t",
	WORK_FILLED "demangledName,shortName,mangledName,launchType,registersPerThread,gridX,gridY,gridZ,blockX,blockY,"
		    "blockZ,staticSharedMemory,dynamicSharedMemory,localMemoryPerThread,localMemoryTotal,gridId,"
		    "graphNodeId,graphId",
};

static const struct nsight_table copies = {
	"CUPTI_ACTIVITY_KIND_MEMCPY",
	WORK "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId "
	     "migrationCause graphNodeId virtualAddress copyCount",
	WORK_FILLED "bytes,copyKind,srcKind,dstKind,graphNodeId",
};

static const struct nsight_table sets = {
	"CUPTI_ACTIVITY_KIND_MEMSET",
	WORK "value! bytes! graphNodeId memKind",
	WORK_FILLED "value,bytes,graphNodeId,memKind",
};

static const struct nsight_table graphs = {
	"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	WORK "graphId! graphExecId!",
	WORK_FILLED "graphId,graphExecId",
};

static const struct nsight_table syncs = {
	"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	WORK "deprecatedSyncType syncType! eventId! eventSyncId",
	WORK_FILLED "syncType,eventId,eventSyncId",
};

static const struct nsight_table calls = {
	"CUPTI_ACTIVITY_KIND_RUNTIME",
	"start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
	"start,end,eventClass,globalTid,nameId,returnValue,callchainId",
};

/* Until all work is known: its correlation ids by the call that launched it */
static const struct nsight_table launched = {
	"temp.nsight_launched",
	"globalTid! start! correlationId!",
	"globalTid,start,correlationId",
};

static const struct nsight_table memory_events = {
	"CUDA_GPU_MEMORY_USAGE_EVENTS",
	"start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name:t correlationId "
	"streamId localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize "
	"importedMemoryPoolAddress importedMemoryPoolProcessId",
	"start,globalPid,deviceId,contextId,address,pc,bytes,memKind,memoryOperationType,correlationId,streamId,"
	"localMemoryPoolAddress,localMemoryPoolSize,localMemoryPoolUtilizedSize",
};

static const struct nsight_table gpus_of_machine = {
	"TARGET_INFO_GPU",
	"vmId! id! name:t busLocation:t isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid:t "
	"luid chipName:t cuDevice ctxswDevPath:t ctrlDevPath:t revision nodeMask constantMemory maxIPC maxRegistersPerBlock "
	"maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm "
	"maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ "
	"computeMajor computeMinor smMajor smMinor numaNodeId",
	"vmId,id,name,isDiscrete,l2CacheSize,totalMemory,memoryBandwidth,clockRate,smCount,uuid,maxShmemPerBlock,"
	"maxShmemPerSm,maxRegistersPerSm,threadsPerWarp,asyncEngines,maxWarpsPerSm,maxBlocksPerSm,maxThreadsPerBlock,"
	"computeMajor,computeMinor,smMajor,smMinor",
};

static const struct nsight_table devices = {
	"TARGET_INFO_CUDA_DEVICE",
	"gpuId cudaId! pid! uuid:t numMultiprocessors",
	"gpuId,cudaId,pid,uuid,numMultiprocessors",
};

static const struct nsight_table contexts = {
	"TARGET_INFO_CUDA_CONTEXT_INFO",
	"nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors",
	"nullStreamId,hwId,vmId,processId,deviceId,contextId",
};

static const struct nsight_table streams = {
	"TARGET_INFO_CUDA_STREAM",
	"streamId! hwId! vmId! processId! contextId! priority! flag!",
	"streamId,hwId,vmId,processId,contextId,priority,flag",
};

/* Nsight's number of a kind of memory is CUPTI's less one; CUPTI's 0 is unknown, Nsight's 7. */
static u32 memory_kind(s64 cupti)
{
	return cupti >= GPU_MEMORY_PAGEABLE && cupti <= GPU_MEMORY_MANAGED_STATIC ? (u32)cupti - 1 : 7;
}

static int put_kernel(struct nsight *n, struct gpu_model *model, const struct gpu_work *w)
{
	const char *mangled = w->name ? w->name : "[kernel]";
	u64 blocks = (u64)w->grid[0] * w->grid[1] * w->grid[2], threads = (u64)w->block[0] * w->block[1] * w->block[2];

	return NSIGHT_PUT(n, &kernels, WORK_VALUES(n, w), N_NAME(gpu_work__title(model, w)),
			  N_NAME(w->name ? gpu_model__short_name(model, w->name) : mangled), N_NAME(mangled),
			  N_NUMBER(1 + w->cooperative), N_NUMBER(w->registers), N_NUMBER(w->grid[0]),
			  N_NUMBER(w->grid[1]), N_NUMBER(w->grid[2]), N_NUMBER(w->block[0]), N_NUMBER(w->block[1]),
			  N_NUMBER(w->block[2]), N_NUMBER(w->static_shared), N_NUMBER(w->dynamic_shared),
			  N_NUMBER(w->local_memory), N_NUMBER(w->local_memory * blocks * threads), N_NUMBER(0),
			  N_KNOWN(w->graph_node), N_KNOWN(w->graph));
}

/* Writes the GPU of work whose device was not described. */
static int put_unknown_gpu(struct nsight *n, const struct gpu_work *w)
{
	u32 number = gpus__number(&n->gpus, w->pid, w->device);
	char name[32];
	u8 *is_known = map__get(&n->devices, &number);

	if (!is_known)
		return -ENOMEM;
	if (*is_known)
		return 0;
	*is_known = 1;
	snprintf(name, sizeof(name), "GPU %u", number);
	return NSIGHT_PUT(n, &gpus_of_machine, N_NUMBER(0), N_NUMBER(number), N_TEXT(name), N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE, N_NONE) ?:
		       NSIGHT_PUT(n, &devices, N_NUMBER(number), N_NUMBER(w->device),
				  N_NUMBER(names__number(n->s->e->names, w->pid)), N_NONE, N_NONE);
}

static int put_runtime(struct nsight *n, s64 thread, u64 start, u64 end, const char *function, s64 result, u32 stack)
{
	const char *name = function ? function : "[launch]";

	return NSIGHT_PUT(n, &calls, N_TIME(start), N_TIME(end), N_NUMBER(strncmp(name, "cuda", 4) != 0),
			  N_NUMBER(thread), N_NAME(name), N_NUMBER(result), N_KNOWN(stack));
}

/* Calls that only CUPTI recorded are known from their work alone. */
static int put_launch(struct nsight *n, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	s64 thread;
	int err;

	/* launches are numbered in the order of their first work */
	if (!l || l->number <= n->last_launch)
		return 0;
	n->last_launch = l->number;
	thread = nsight__thread(n, l->pid, l->tid);
	err = NSIGHT_PUT(n, &launched, N_NUMBER(thread), N_TIME(l->start), N_NUMBER(w->correlation));
	return err || l->probed ? err : put_runtime(n, thread, l->start, l->end, l->function, l->ret, 0);
}

int nsight__put_work(struct nsight *n, struct gpu_model *model, const struct gpu_work *w)
{
	int err;

	/* Nsight's tables have work with its times on the device */
	if (w->host_time || w->open)
		return 0;
	if (w->correlation > n->last_correlation)
		n->last_correlation = w->correlation;
	err = put_unknown_gpu(n, w) ?: put_launch(n, w);
	if (err)
		return err;
	switch (w->kind) {
	case GPU_KERNEL:
		return put_kernel(n, model, w);
	case GPU_COPY:
		return NSIGHT_PUT(n, &copies, WORK_VALUES(n, w), N_NUMBER(w->bytes), N_NUMBER(w->copy_kind),
				  N_NUMBER(memory_kind(w->from_memory)), N_NUMBER(memory_kind(w->to_memory)),
				  N_KNOWN(w->graph_node));
	case GPU_SET:
		return NSIGHT_PUT(n, &sets, WORK_VALUES(n, w), N_NUMBER(w->value), N_NUMBER(w->bytes),
				  N_KNOWN(w->graph_node), N_NUMBER(memory_kind(w->to_memory)));
	default:
		return NSIGHT_PUT(n, &graphs, WORK_VALUES(n, w), N_NUMBER(w->graph), N_NUMBER(w->graph));
	}
}

int nsight__put_call(struct nsight *n, const struct gpu_host_call *c)
{
	/* Nsight does not record the driver's calls that the runtime makes, nor calls without an end */
	if (c->nested || c->untimed)
		return 0;
	return put_runtime(n, nsight__thread(n, c->pid, c->tid), c->start, c->end, c->function, c->ret, c->stack);
}

bool nsight__has_calls(const struct nsight *n)
{
	const struct nsight_table *t = &calls;

	return map__find(&n->inserts, &t);
}

/* Calls without work get numbers that CUPTI did not use, because programs expect each call to have one. */
int nsight__join_calls(struct nsight *n)
{
	static const char join[] =
		"CREATE INDEX temp.nsight_by_call ON nsight_launched(globalTid, start);"
		"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME AS r SET correlationId = coalesce((SELECT l.correlationId "
		"FROM temp.nsight_launched AS l WHERE l.globalTid = r.globalTid AND l.start = r.start), %u + rowid);"
		"DROP TABLE temp.nsight_launched";
	const struct nsight_table *t = &launched;
	char sql[sizeof(join) + 16];
	int err;

	if (!nsight__has_calls(n))
		return 0;
	err = map__find(&n->inserts, &t) ? 0 : nsight__create(n, &launched);
	nsight__forget(n, &launched);
	snprintf(sql, sizeof(sql), join, n->last_correlation);
	return err ? err : sqlite__execute(n->s, sql);
}

static void write_uuid(char *buf, size_t size, u64 first, u64 last)
{
	/* the bytes of the UUID, in their order in memory */
	u8 bytes[16];
	int len = 0;

	memcpy(bytes, &first, 8);
	memcpy(bytes + 8, &last, 8);
	for (int i = 0; i < 16; i++)
		len += snprintf(buf + len, size - (size_t)len, "%s%02x",
				i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

/* memory bandwidth clock_khz l2_cache */
int nsight__put_device(struct nsight *n, const struct nsight_event *e)
{
#define FIELD(name) N_NUMBER(view__get(e->view, #name))
	u32 device = (u32)view__get(e->view, "device"), number = gpus__number(&n->gpus, e->pid, device), len;
	const char *model = view__text(e->view, schema_event__field(e->view->event, "model"), &len);
	u8 *is_known = map__get(&n->devices, &number);
	char uuid[48] = "", name[65];
	int err = 0;

	if (!is_known)
		return -ENOMEM;
	write_uuid(uuid, sizeof(uuid), (u64)view__get(e->view, "uuid_first"), (u64)view__get(e->view, "uuid_last"));
	snprintf(name, sizeof(name), "%.*s", (int)(len < 64 ? len : 64), model);
	if (!*is_known)
		err = NSIGHT_PUT(n, &gpus_of_machine, N_NUMBER(0), N_NUMBER(number), N_TEXT(name), N_NUMBER(1),
				 FIELD(l2_cache), FIELD(memory), N_NUMBER(view__get(e->view, "bandwidth") * 1000),
				 N_NUMBER(view__get(e->view, "clock_khz") * 1000), FIELD(multiprocessors), N_TEXT(uuid),
				 FIELD(shared_per_block), FIELD(shared_per_sm), FIELD(registers_per_sm),
				 FIELD(warp_size), FIELD(copy_engines), FIELD(warps_per_sm), FIELD(blocks_per_sm),
				 FIELD(threads_per_block), FIELD(major), FIELD(minor), FIELD(major), FIELD(minor));
	*is_known = 1;
	return err ? err :
		     NSIGHT_PUT(n, &devices, N_NUMBER(number), N_NUMBER(device),
				N_NUMBER(names__number(n->s->e->names, e->pid)), N_TEXT(uuid), FIELD(multiprocessors));
#undef FIELD
}

/* context device null_stream */
int nsight__put_context(struct nsight *n, const struct nsight_event *e)
{
	u32 key[2] = { e->pid, (u32)e->value[0] }, *device = map__get(&n->contexts, key);

	if (!device)
		return -ENOMEM;
	*device = (u32)e->value[1];
	return NSIGHT_PUT(n, &contexts, N_NUMBER(e->value[2]), N_NUMBER(1 + names__machine(n->s->e->names, e->pid)),
			  N_NUMBER(0), N_NUMBER(names__number(n->s->e->names, e->pid)), N_NUMBER(*device),
			  N_NUMBER(e->value[0]));
}

/* context stream priority stream_kind */
int nsight__put_stream(struct nsight *n, const struct nsight_event *e)
{
	return NSIGHT_PUT(n, &streams, N_NUMBER(e->value[1]), N_NUMBER(1 + names__machine(n->s->e->names, e->pid)),
			  N_NUMBER(0), N_NUMBER(names__number(n->s->e->names, e->pid)), N_NUMBER(e->value[0]),
			  N_NUMBER((s32)e->value[2]), N_NUMBER(e->value[3]));
}

/* context stream correlation kind cuda_event event_sync */
int nsight__put_sync(struct nsight *n, const struct nsight_event *e)
{
	u32 key[2] = { e->pid, (u32)e->value[0] }, *device = map__find(&n->contexts, key);

	if ((u32)e->value[2] > n->last_correlation)
		n->last_correlation = (u32)e->value[2];
	return NSIGHT_PUT(n, &syncs, N_TIME(e->start), N_TIME(e->time), N_NUMBER(device ? *device : 0),
			  N_NUMBER(e->value[0]), N_NUMBER(e->value[1]), N_NUMBER(e->value[2]), N_PROCESS(n, e->pid),
			  N_NUMBER(e->value[3]), N_NUMBER(e->value[4]), N_NUMBER(e->value[5]));
}

/* device context stream address bytes memory operation correlation */
int nsight__put_memory(struct nsight *n, const struct nsight_event *e)
{
	if ((u32)e->value[7] > n->last_correlation)
		n->last_correlation = (u32)e->value[7];
	return NSIGHT_PUT(n, &memory_events, N_TIME(e->time), N_PROCESS(n, e->pid), N_NUMBER(e->value[0]),
			  N_NUMBER(e->value[1]), N_NUMBER(e->value[3]), N_NUMBER(0), N_NUMBER(e->value[4]),
			  N_NUMBER(memory_kind(e->value[5])), N_NUMBER(e->value[6] == GPU_MEMORY_RELEASE),
			  N_NUMBER(e->value[7]), N_NUMBER(e->value[2]), N_KNOWN(view__get(e->view, "pool")),
			  N_KNOWN(view__get(e->view, "pool_size")), N_KNOWN(view__get(e->view, "pool_used")));
}
