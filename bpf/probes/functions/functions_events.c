// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

/* In a function a thread may do anything. */
static const struct event_meaning events[] = {
	{ "functions_call", .is_no_wait = true },
	{ "functions_text", .is_part = true },
	{ "functions_named", .is_part = true },
	{ "functions_shim", .is_part = true },
	{},
};

FAMILY_MEANING(functions) = { "functions", events };
