// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The net family's host side: the same processes are followed as by family sched. */
#include "record/family.h"

FAMILY_HOST(net) = {
	.name = "net",
	.is_runtime = runtime__is_one,
};
