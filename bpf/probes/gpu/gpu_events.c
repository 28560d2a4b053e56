// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* The work of devices, and CUPTI's view of calls that have events of their own */
static const struct event_meaning events[] = {
	{ "gpu_kernel", .is_no_wait = true, .is_part = true },
	{ "gpu_memcpy", .is_no_wait = true, .is_part = true },
	{ "gpu_memset", .is_no_wait = true, .is_part = true },
	{ "gpu_graph", .is_no_wait = true, .is_part = true },
	{ "gpu_call", .is_no_wait = true, .is_part = true },
	{ "gpu_device", .is_no_wait = true, .is_part = true },
	{ "gpu_context", .is_no_wait = true, .is_part = true },
	{ "gpu_stream", .is_no_wait = true, .is_part = true },
	{ "gpu_name", .is_no_wait = true, .is_part = true },
	{ "gpu_*", .is_no_wait = true },
	{},
};

FAMILY_MEANING(gpu) = { "gpu", events };
