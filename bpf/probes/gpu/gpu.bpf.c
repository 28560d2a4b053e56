// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies the records of CUPTI's activities that the shim hands over (core/shim_records.bpf.h). */
#include "gpu.h"

#include "core/shim_records.bpf.h"

OPTION(gpu, nodes, "each node of a graph, not the graph as a whole");

/* void sonde_cupti_records(const void *batch, uint64_t bytes) */
SEC("entry/libsonde-cupti.so:sonde_cupti_records") int gpu_records(struct pt_regs *ctx)
{
	return shim__pass(ctx, EVENT_FAMILY(ID_gpu_kernel), false);
}

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(gpu_control, "cupti control")
{
	return 0;
}
