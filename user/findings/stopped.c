// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/stopped.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "findings/group.h"
#include "util/array.h"

bool stopped__is_kind(enum finding_kind kind)
{
	return kind == FINDING_STOPPED || kind == FINDING_TRACED || kind == FINDING_FROZEN;
}

char *stopped__by(const struct names *names, u32 pid, enum finding_kind kind, u64 object, u32 by, char *buf,
		  size_t size)
{
	const char *signal = kind == FINDING_STOPPED && object < NSIG ? sigabbrev_np((int)object) : NULL;

	*buf = '\0';
	if (signal)
		snprintf(buf, size, "SIG%s", signal);
	else if (kind == FINDING_TRACED && by)
		names__label(names, buf, size, by, 0);
	else if (kind == FINDING_FROZEN)
		snprintf(buf, size, "%s", names__cgroup(names, pid));
	return buf;
}

char *stopped__remedy(enum finding_kind kind, u32 pid, char *buf, size_t size)
{
	*buf = '\0';
	if (kind == FINDING_STOPPED)
		snprintf(buf, size, "`kill -CONT %u` lets it go on.", pid);
	else if (kind == FINDING_FROZEN)
		snprintf(
			buf, size,
			"0 in cgroup.freeze (v1: THAWED in freezer.state) of this cgroup, or of a frozen one above it, "
			"lets it go on.");
	return buf;
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	(void)arg;
	snprintf(f->report, sizeof(f->report), "offcpu");
	stopped__by(in->q->names, f->pid, f->kind, group__most(in, g, GROUP_OBJECT).value, 0, f->object,
		    sizeof(f->object));
	/* the tracer, or what sent SIGCONT or thawed the cgroup */
	group__add_ender(in, g, f);
	/* those that went on by themselves need no help */
	if (f->is_background && !f->counterpart.pid)
		stopped__remedy(f->kind, f->pid, f->advice, sizeof(f->advice));
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	static const enum finding_kind kinds[] = { FINDING_STOPPED, FINDING_TRACED, FINDING_FROZEN };
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_LEN(kinds); i++)
		err = groups__each_finding(in, kinds[i], out, complete, NULL);
	return err;
}

FINDINGS(stopped) = { .name = "stopped", .find = find };
