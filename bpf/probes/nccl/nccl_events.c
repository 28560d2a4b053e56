// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "nccl_*", .cause = ACTIVITY_NCCL, .rank = 7, .library = "NCCL", .report = "nccl-api" },
	{},
};

FAMILY_MEANING(nccl) = { "nccl", events };
