// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "python_gc", .cause = ACTIVITY_GC, .rank = RANK_CALL - 1, .reason = "garbage collection" },
	{ "python_thread_run", .is_no_wait = true },
	{ "python_import", .is_no_wait = true },
	{},
};

FAMILY_MEANING(python) = { "python", events };
