// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "cuda_*", .cause = ACTIVITY_CUDA, .rank = RANK_CALL },
	{},
};

FAMILY_MEANING(cuda) = { "cuda", events };
