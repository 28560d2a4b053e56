// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "cudalib_call", .cause = ACTIVITY_LIBRARY, .rank = RANK_CALL - 1, .library = "CUDA libraries",
	  .report = "math" },
	{},
};

FAMILY_MEANING(cudalib) = { "cudalib", events };
