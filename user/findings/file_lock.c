// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for locks of files: which file, and who held its lock. The thread that ends a wait is the one that released the
 * lock, by flock(), fcntl(), close() or its end, so that it is the holder; what it did meanwhile follows from its own
 * activity.
 */
#include <stdio.h>

#include "findings/waited_for.h"
#include "output/table.h"

/* The thread that ended at least 1 / ENDED_PART of the waits is named. */
#define ENDED_PART 2

/* Adds the file, and returns the process that held its lock as the recording ended; 0: not known. */
static u32 add_file(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct group_most file = group__most(in, g, GROUP_OBJECT);
	const struct osrt_file *known = file.value ? osrt_files__find(in->files, f->pid, (u32)file.value) : NULL;

	if (known)
		snprintf(f->object, sizeof(f->object), "%s", osrt_files__name(in->files, known->number));
	return known ? known->peer : 0;
}

/* Names the holder, and adds what its main thread did: a lock of a file is the process's. */
static void add_holder(const struct finding_input *in, const struct group *g, struct finding *f, u32 pid)
{
	f->confidence = FINDING_ATTRIBUTED;
	f->counterpart.pid = f->counterpart.tid = pid;
	waited_for__add_activity(in, g, f);
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct group_most caused_by = group__most(in, g, GROUP_CAUSED_BY);
	u32 pid = (u32)(caused_by.value >> 32), tid = (u32)caused_by.value, holder;

	(void)arg;
	snprintf(f->report, sizeof(f->report), "osrt");
	holder = add_file(in, g, f);
	if (waited_for__is_idle(in, g)) {
		group__set_idle(in, g, f);
		return 0;
	}
	finding__waits_for_known(f);
	f->is_background = false;
	/* if the holder waits itself, the finding names the thread at the end of the chain of waits */
	if (waited_for__follow(in, g, f) && (f->counterpart.pid != pid || f->counterpart.tid != tid))
		return 0;
	f->counterpart.is_end_of_chain = false;
	if (!pid || ENDED_PART * caused_by.ns < f->lost_ns - f->delay_ns) {
		f->counterpart = (struct finding_counterpart){ 0 };
		if (holder)
			add_holder(in, g, f, holder);
		return 0;
	}
	f->confidence = FINDING_ATTRIBUTED;
	f->counterpart.pid = pid;
	f->counterpart.tid = tid;
	f->counterpart.percent = table__percent(caused_by.ns, f->lost_ns - f->delay_ns);
	if (f->counterpart.percent > 100)
		f->counterpart.percent = 100;
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_FILE_LOCK, out, complete, NULL);
}

FINDINGS(file_lock) = { .name = "file-lock", .decides_colours = true, .find = find };
