// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* In a range a thread may do anything, and ranges of two domains may cross. */
static const struct event_meaning events[] = {
	{ "nvtx_range", .is_no_wait = true, .lane = "NVTX" },
	{ "nvtx_text", .is_part = true },
	{ "nvtx_category", .is_part = true },
	{ "nvtx_resource", .is_part = true },
	{ "nvtx_object", .is_part = true },
	{ "nvtx_shim", .is_part = true },
	{},
};

FAMILY_MEANING(nvtx) = { "nvtx", events };
