// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

#define CALL .cause = ACTIVITY_CUDA, .rank = RANK_CALL, .library = "CUDA", .report = "cuda-api"

static const struct event_meaning events[] = {
	{ "cuda_copy*", CALL, .is_copy = true },
	{ "cuda_*", CALL },
	{},
};

FAMILY_MEANING(cuda) = { "cuda", events };
