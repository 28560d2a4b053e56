// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Processes with so many page faults that these are likely to take much of their time in the kernel. */
#include <errno.h>
#include <stdio.h>

#include "findings/finding.h"
#include "output/text.h"

#define PER_SECOND 20000 /* a fault takes some us, so fewer of them take little of the time */

struct faults {
	u64 minor, major;
};

struct reading {
	const struct query *q;
	struct map processes; /* u32 pid -> struct faults */
};

static int on_tasks(const struct rows *rows, void *arg)
{
	struct reading *r = arg;

	ROWS_EACH(v, rows) {
		u32 pid = (u32)view__get(&v, "pid");
		u64 start = (u64)view__get(&v, "start"), end = (u64)view__get(&v, "time");
		struct faults *f;

		/* the counts are of the whole span, so it must lie mostly within the selected time */
		if (2 * query__inside(r->q, start, end) < end - start)
			continue;
		f = map__get(&r->processes, &pid);
		if (!f)
			return -ENOMEM;
		f->minor += (u64)view__get(&v, "minor");
		f->major += (u64)view__get(&v, "major");
	}
	return 0;
}

static int add(const struct finding_input *in, u32 pid, const struct faults *faults, struct findings *out)
{
	double seconds = (double)query__duration(in->q) / 1e9;
	struct finding *f;

	if ((double)faults->minor < PER_SECOND * seconds)
		return 0;
	f = findings__add(out, FINDING_FAULTS);
	if (!f)
		return -ENOMEM;
	f->is_notice = true;
	f->pid = pid;
	f->processes = 1;
	f->times = faults->minor;
	snprintf(f->report, sizeof(f->report), "disk");
	if (faults->major)
		snprintf(f->detail, sizeof(f->detail), "and %s that read from a disk", TEXT_COUNT(faults->major));
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		"It allocates and frees much memory: larger or reused buffers, or huge pages, cause fewer page faults.");
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct reading r = { .q = in->q };
	int err;

	map__init(&r.processes, sizeof(u32), sizeof(struct faults));
	err = query__read_kind(in->q, "disk_task", on_tasks, &r);
	for (u32 i = 0; !err && i < r.processes.n; i++)
		err = add(in, *(const u32 *)map__key(&r.processes, i), map__value(&r.processes, i), out);
	map__free(&r.processes);
	return err;
}

FINDINGS(faults) = { .name = "faults", .find = find };
