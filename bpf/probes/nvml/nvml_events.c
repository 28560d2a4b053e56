// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces: none is drawn on a thread; exports draw counters. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "nvml_*", .is_no_wait = true, .is_part = true },
	{},
};

FAMILY_MEANING(nvml) = { "nvml", events };
