// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* Other events of the same wait explain more; sample_wake has a wait of the woken thread, without its stack. */
static const struct event_meaning events[] = {
	{ "sample_off", .cause = ACTIVITY_SYSCALL, .rank = 1 },
	{ "sample_wake", .cause = ACTIVITY_FUTEX, .rank = 0, .reason = "futex" },
	{},
};

FAMILY_MEANING(sample) = { "sample", events };
