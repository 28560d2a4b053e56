// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies the records of CUPTI's activities that the shim hands over (core/shim_records.bpf.h). */
#include "gpu.h"

#define SHIM_EVENT ID_gpu_kernel
#define SHIM_ROOMS gpu_rooms
#include "core/shim_records.bpf.h"

OPTION(gpu, nodes, "each node of a graph, not the graph as a whole");

static const struct shim_form forms[FORMS] = {
	[SHIM_KERNEL] = { FORM_SPAN(shim_kernel) },  [SHIM_MEMCPY] = { FORM_SPAN(shim_memcpy) },
	[SHIM_MEMSET] = { FORM_SPAN(shim_memset) },  [SHIM_SYNCHRONIZATION] = { FORM_SPAN(shim_sync) },
	[SHIM_GRAPH] = { FORM_SPAN(shim_graph) },    [SHIM_ALLOCATION] = { FORM_EVENT(shim_allocation) },
	[SHIM_POOL] = { FORM_EVENT(shim_pool) },     [SHIM_CALL] = { FORM_SPAN(shim_call) },
	[SHIM_DEVICE] = { FORM_EVENT(shim_device) }, [SHIM_CONTEXT] = { FORM_EVENT(shim_context) },
	[SHIM_STREAM] = { FORM_EVENT(shim_stream) }, [SHIM_NAME] = { FORM_TEXT(shim_name) },
	[SHIM_CLOCK] = { FORM_EVENT(shim_clock) },   [SHIM_DROPPED] = { FORM_EVENT(shim_dropped) },
	[SHIM_STATE] = { FORM_TEXT(shim_state) },
};

/* void sonde_cupti_records(const void *batch, uint64_t bytes) */
SHIM_SITE(gpu_records, "libsonde-cupti.so:sonde_cupti_records", false, forms)

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(gpu_control, "cupti control")
{
	return 0;
}
