// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* One attempt to take the GIL may be several waits. */
static const struct event_meaning events[] = {
	{ "gil_hold", .is_no_wait = true },
	{ "gil_slice", .is_no_wait = true },
	{ "gil_*", .cause = ACTIVITY_GIL, .rank = 10, .reason = "GIL" },
	{},
};

FAMILY_MEANING(gil) = { "gil", events };
