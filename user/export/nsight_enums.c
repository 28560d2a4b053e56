// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables of enums: the names and labels that Nsight gives to numbers in its tables. */
#include "export/nsight.h"

#include "util/array.h"

struct value {
	int id;
	const char *name, *label; /* label NULL: the name */
};

static const struct value copies[] = {
	{ 0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown" },
	{ 1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device" },
	{ 2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host" },
	{ 3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array" },
	{ 4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host" },
	{ 5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array" },
	{ 6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device" },
	{ 7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array" },
	{ 8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device" },
	{ 9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host" },
	{ 10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer" },
	{ 11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device" },
	{ 12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host" },
	{ 13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device" },
};

static const struct value memories[] = {
	{ 0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable" },
	{ 1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned" },
	{ 2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device" },
	{ 3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array" },
	{ 4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed" },
	{ 5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static" },
	{ 6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static" },
	{ 7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown" },
};

static const struct value memory_operations[] = {
	{ 0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation" },
	{ 1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation" },
};

static const struct value syncs[] = {
	{ 0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown" },
	{ 1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync" },
	{ 2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync" },
	{ 3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync" },
	{ 4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync" },
};

static const struct value launches[] = {
	{ 0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown" },
	{ 1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular" },
	{ 2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device" },
};

static const struct value streams[] = {
	{ 0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown" },
	{ 1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default" },
	{ 2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking" },
	{ 3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null" },
};

static const struct value classes[] = {
	{ 0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", NULL }, { 1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", NULL },
	{ 27, "TRACE_PROCESS_EVENT_OS_RUNTIME", NULL },	 { 28, "TRACE_PROCESS_EVENT_CUDNN", NULL },
	{ 29, "TRACE_PROCESS_EVENT_CUBLAS", NULL },
};

static const struct value ranges[] = {
	{ 33, "NvtxCategory", NULL },	   { 34, "NvtxMark", NULL },	      { 39, "NvtxThread", NULL },
	{ 59, "NvtxPushPopRange", NULL },  { 60, "NvtxStartEndRange", NULL }, { 75, "NvtxDomainCreate", NULL },
	{ 76, "NvtxDomainDestroy", NULL },
};

static const struct value states[] = {
	{ 0, "Unknown", NULL },		{ 1, "Running", NULL },	    { 2, "Interruptible", NULL },
	{ 3, "Uninterruptible", NULL }, { 4, "Stopped", NULL },	    { 5, "Terminated", NULL },
	{ 6, "Unscheduled", NULL },	{ 7, "Waiting", NULL },	    { 8, "OSRuntime", "OS runtime" },
	{ 9, "Initialized", NULL },	{ 10, "Transition", NULL },
};

static const struct value severities[] = {
	{ 0, "Unknown", NULL },
	{ 1, "Information", NULL },
	{ 2, "Warning", NULL },
	{ 3, "Error", NULL },
};

static const struct value sources[] = { { 0, "Unknown", NULL } };

#define ENUM(name, values)                                                                  \
	{                                                                                   \
		{ name, "id:p name:t label:t", "id,name,label" }, values, ARRAY_LEN(values) \
	}

static const struct {
	struct nsight_table table;
	const struct value *values;
	size_t n;
} enums[] = {
	ENUM("ENUM_CUDA_MEMCPY_OPER", copies),
	ENUM("ENUM_CUDA_MEM_KIND", memories),
	ENUM("ENUM_CUDA_DEV_MEM_EVENT_OPER", memory_operations),
	ENUM("ENUM_CUPTI_SYNC_TYPE", syncs),
	ENUM("ENUM_CUDA_KERNEL_LAUNCH_TYPE", launches),
	ENUM("ENUM_CUPTI_STREAM_TYPE", streams),
	ENUM("ENUM_NSYS_EVENT_CLASS", classes),
	ENUM("ENUM_NSYS_EVENT_TYPE", ranges),
	ENUM("ENUM_SAMPLING_THREAD_STATE", states),
	ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", severities),
	ENUM("ENUM_DIAGNOSTIC_SOURCE_TYPE", sources),
	ENUM("ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", sources),
};

int nsight__put_enums(struct nsight *n)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(enums); i++)
		for (size_t j = 0; !err && j < enums[i].n; j++) {
			const struct value *v = &enums[i].values[j];

			err = NSIGHT_PUT(n, &enums[i].table, N_NUMBER(v->id), N_TEXT(v->name),
					 N_TEXT(v->label ? v->label : v->name));
		}
	return err;
}
