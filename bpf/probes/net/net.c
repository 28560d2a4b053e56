// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The net family's host side: the same processes are followed as by family sched. */
#include "record/family.h"

static bool is_runtime(struct elf *elf, const char *path)
{
	const struct family_host *sched = family_host__find("sched");

	return sched && sched->is_runtime(elf, path);
}

FAMILY_HOST(net) = {
	.name = "net",
	.is_runtime = is_runtime,
};
