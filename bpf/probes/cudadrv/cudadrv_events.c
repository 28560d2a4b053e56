// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* The runtime's call that contains it explains more. */
#define CALL .cause = ACTIVITY_CUDA, .rank = RANK_CALL - 1, .library = "CUDA", .report = "cuda-api"

static const struct event_meaning events[] = {
	{ "cudadrv_copy*", CALL, .is_copy = true },
	{ "cudadrv_*", CALL },
	{},
};

FAMILY_MEANING(cudadrv) = { "cudadrv", events };
