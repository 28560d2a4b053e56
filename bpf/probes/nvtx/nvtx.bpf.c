// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies the records of NVTX that the shim hands over (core/shim_records.bpf.h). */
#include "nvtx.h"

#include "core/shim_records.bpf.h"

/* void sonde_cupti_nvtx(const struct shim_lane_batch *batch, uint64_t bytes) */
SEC("entry/libsonde-cupti.so:sonde_cupti_nvtx") int nvtx_records(struct pt_regs *ctx)
{
	return shim__pass(ctx, EVENT_FAMILY(ID_nvtx_range), true);
}

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(nvtx_control, "nvtx control")
{
	return 0;
}
