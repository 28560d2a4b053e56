// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "lock_*", .cause = ACTIVITY_LOCK, .rank = 8 },
	{},
};

FAMILY_MEANING(lock) = { "lock", events };
