// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies the records of calls of Python functions that the shim hands over (core/shim_records.bpf.h). */
#include "functions.h"

#define SHIM_EVENT ID_functions_call
#define SHIM_ROOMS functions_rooms
#include "core/shim_records.bpf.h"

static const struct shim_form forms[FORMS] = {
	[FUNCTION_CALL] = { FORM_SPAN(shim_function_call) },
	[FUNCTION_TEXT] = { FORM_TEXT(shim_function_text) },
	[FUNCTION_NAMED] = { FORM_TEXT(shim_function_named) },
	[FUNCTION_DROPPED] = { FORM_EVENT(shim_function_dropped) },
	[FUNCTION_STATE] = { FORM_TEXT(shim_state) },
};

/* void sonde_cupti_functions(const struct shim_lane_batch *batch, uint64_t bytes) */
SHIM_SITE(functions_records, "libsonde-cupti.so:sonde_cupti_functions", true, forms)

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(functions_control, "functions control")
{
	return 0;
}
