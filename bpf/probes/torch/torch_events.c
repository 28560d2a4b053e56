// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* An operator may do anything. */
static const struct event_meaning events[] = {
	{ "torch_*", .is_no_wait = true },
	{},
};

FAMILY_MEANING(torch) = { "torch", events };
