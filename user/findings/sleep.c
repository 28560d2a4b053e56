// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sleeps that code requested. In a request or a callback of an event loop they delay others. */
#include <stdio.h>

#include "findings/classify.h"
#include "findings/group.h"

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct group_most stack = group__most(in, g, GROUP_STACK);
	struct stack_parts parts = stack_parts__of(in->stacks, (u32)stack.value);

	(void)arg;
	snprintf(f->report, sizeof(f->report), "offcpu");
	if (parts.serves) {
		f->weight = (double)f->lost_ns;
		f->is_background = false;
	} else if (f->tid && f->tid != f->pid)
		f->weight /= 10;
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_SLEEP, out, complete, NULL);
}

FINDINGS(sleep) = { .name = "sleep", .find = find };
