// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sleeps that code requested. In a request or a callback of an event loop they delay others. */
#include <stdio.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "output/text.h"

/* Adds how long the sleeps were at most, if they are of very different lengths. Returns whether they are. */
static bool add_uneven(const struct finding_input *in, const struct group *g, struct finding *f)
{
	char text[128], ns[TEXT_NUMBER];
	bool is_uneven = false;
	u64 longest = 0;

	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);

		/* short waits without a stack are of other lengths */
		if (cell->is_delay || !profile__key(in->profile, g->cells[i])->stack)
			continue;
		is_uneven = is_uneven || profile_cell__is_uneven(cell);
		longest = cell->longest > longest ? cell->longest : longest;
	}
	if (!is_uneven)
		return false;
	snprintf(text, sizeof(text), "sometimes for longer, up to %s, as retries with growing delays do",
		 text__ns(ns, sizeof(ns), longest));
	finding__add_detail(f, text);
	return true;
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct group_most stack = group__most(in, g, GROUP_STACK);
	struct stack_parts parts = stack_parts__of(in->stacks, (u32)stack.value);

	(void)arg;
	snprintf(f->report, sizeof(f->report), "offcpu");
	if (parts.serves) {
		f->weight = (double)f->lost_ns;
		f->is_background = false;
	} else if (!add_uneven(in, g, f) && f->tid && f->tid != f->pid)
		f->weight /= 10;
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_SLEEP, out, complete, NULL);
}

FINDINGS(sleep) = { .name = "sleep", .find = find };
