// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the family's events mean to those who read traces. */
#include "model/meaning.h"

static const struct event_meaning events[] = {
	{ "net_connect", .cause = ACTIVITY_CONNECT, .rank = 3, .reason = "connect" },
	{ "net_accept", .is_no_wait = true },
	{ "net_close", .is_no_wait = true },
	{},
};

FAMILY_MEANING(net) = { "net", events };
