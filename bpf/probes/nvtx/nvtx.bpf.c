// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies the records of NVTX that the shim hands over (core/shim_records.bpf.h). */
#include "nvtx.h"

#define SHIM_EVENT ID_nvtx_range
#define SHIM_ROOMS nvtx_rooms
#include "core/shim_records.bpf.h"

static const struct shim_form forms[FORMS] = {
	[NVTX_RANGE] = { FORM_SPAN(shim_nvtx_range) },
	[NVTX_MARK] = { FORM_EVENT(shim_nvtx_mark) },
	[NVTX_TEXT] = { FORM_TEXT(shim_nvtx_text) },
	[NVTX_CATEGORY] = { FORM_EVENT(shim_nvtx_category) },
	[NVTX_RESOURCE] = { FORM_TEXT(shim_nvtx_resource) },
	[NVTX_PAYLOAD] = { FORM_TEXT(shim_nvtx_payload) },
	[NVTX_COUNTER] = { FORM_EVENT(shim_nvtx_counter) },
	[NVTX_DROPPED] = { FORM_EVENT(shim_nvtx_dropped) },
	[NVTX_STATE] = { FORM_TEXT(shim_state) },
	[NVTX_OBJECT] = { FORM_TEXT(shim_nvtx_object) },
};

/* void sonde_cupti_nvtx(const struct shim_lane_batch *batch, uint64_t bytes) */
SHIM_SITE(nvtx_records, "libsonde-cupti.so:sonde_cupti_nvtx", true, forms)

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(nvtx_control, "nvtx control")
{
	return 0;
}
