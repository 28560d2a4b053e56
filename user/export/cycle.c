// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One cycle of `record --schedule` as a trace of its own, with all that describes the targets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/value.h"
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

static int check(const struct trace *t, const char *option, char *why, size_t len)
{
	struct cycles cycles;
	u32 number = number_of(option), n;
	int err = cycles__load(&cycles, (struct trace *)t);
	bool exists = number && number <= cycles.n && cycles.list[number - 1].to;

	n = cycles.n;
	cycles__free(&cycles);
	if (!err && exists)
		return 0;
	if (number && n)
		snprintf(why, len, "cycle %u was not recorded: the trace has %u", number, n);
	else if (n)
		snprintf(why, len, "which cycle? --event takes its number, up to %u in this trace", n);
	else
		snprintf(why, len, "the trace has no cycle: `sonde record --schedule` records them");
	return -EINVAL;
}

static bool is_of_one_time(const struct schema_event *e)
{
	return event__is_measured(e) && !schema_event__outlasts(e);
}

static int begin(struct export *e)
{
	struct cycles cycles;
	u32 number = number_of(e->choice);
	int err = cycles__load(&cycles, e->trace);

	if (!err && (!number || number > cycles.n))
		err = -EINVAL;
	/* spans are written as they were recorded, and a reader of the new trace cuts them */
	trace__set_windows(e->trace, NULL, 0);
	if (!err)
		err = merge__part(e->trace, &cycles.list[number - 1], is_of_one_time, e->fd, e->why, sizeof(e->why));
	cycles__free(&cycles);
	return err;
}

EXPORTER(cycle) = {
	.name = "cycle",
	.doc = "a trace with one cycle of `record --schedule`, which --event N names",
	.binary = true,
	.needs_file = true,
	.check = check,
	.begin = begin,
};
