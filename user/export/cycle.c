// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One cycle of `record --schedule` as a trace of its own, with all that describes the targets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/export.h"
#include "model/cycles.h"
#include "model/merge.h"

/* Returns the number of a cycle, as --event gives it; 0: it is none. */
static u32 number_of(const char *option)
{
	char *end;
	unsigned long number;

	if (!option || *option < '1' || *option > '9')
		return 0;
	number = strtoul(option, &end, 10);
	return *end || number > ~0u ? 0 : (u32)number;
}

static int check(struct export *e)
{
	struct cycles cycles;
	u32 number = number_of(e->choice), n;
	int err = cycles__load(&cycles, e->trace);
	bool exists = number && number <= cycles.n && cycles.list[number - 1].to;

	if (exists)
		e->part = cycles.list[number - 1];
	n = cycles.n;
	cycles__free(&cycles);
	if (!err && exists)
		return 0;
	if (number && n)
		snprintf(e->why, sizeof(e->why), "cycle %u was not recorded: the trace has %u", number, n);
	else if (n)
		snprintf(e->why, sizeof(e->why), "which cycle? --event takes its number, up to %u in this trace", n);
	else
		snprintf(e->why, sizeof(e->why), "the trace has no cycle: `sonde record --schedule` records them");
	return -EINVAL;
}

static int begin(struct export *e)
{
	const struct merge_part part = { .time = e->part };

	/* spans are written as they were recorded, and a reader of the new trace cuts them */
	trace__set_windows(e->trace, NULL, 0);
	return merge__part(e->trace, &part, e->fd, e->why, sizeof(e->why));
}

EXPORTER(cycle) = {
	.name = "cycle",
	.doc = "a trace with one cycle of `record --schedule`, which --event N names",
	.binary = true,
	.needs_file = true,
	.check = check,
	.begin = begin,
};
