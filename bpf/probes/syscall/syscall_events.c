// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "syscall*", .cause = ACTIVITY_SYSCALL, .rank = 2 },
	{},
};

FAMILY_MEANING(syscall) = { "syscall", events };
