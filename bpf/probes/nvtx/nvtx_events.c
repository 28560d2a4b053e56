// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* In a range a thread may do anything, and ranges of two domains may cross. */
static const struct event_meaning events[] = {
	{ "nvtx_range", .is_no_wait = true, .lane = "NVTX" },
	{},
};

FAMILY_MEANING(nvtx) = { "nvtx", events };
