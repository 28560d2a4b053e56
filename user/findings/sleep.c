// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sleeps that code requested. In a request or a callback of an event loop they delay others. */
#include <stdio.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "findings/polls.h"
#include "output/text.h"

/* Adds how long the sleeps were at most, if they are of very different lengths. Returns whether they are. */
static bool add_uneven(const struct finding_input *in, const struct group *g, struct finding *f)
{
	char text[128];
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
	snprintf(text, sizeof(text), "some of them longer, up to %s, as in retries with growing delays",
		 TEXT_NS(longest));
	finding__add_detail(f, text);
	return true;
}

/* Weight of uneven sleeps: a retry is a failure that something waits for, a sleep of equal length mostly is not. */
#define UNEVEN_WEIGHT 0.3

/* If a thread runs for less than this part of its time, it does nothing but sleep. */
#define ELSE_PART 20

/*
 * Does the code do nothing but sleep, for equally long each time, as a heartbeat or a script that waits for its
 * workers does? Then it is idle. If another thread waits for this one, that thread's finding names the sleep.
 */
static bool is_idle(const struct finding_input *in, const struct group *g)
{
	struct thread_key thread = profile__key(in->profile, g->cells[0])->thread;
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);

	return g->threads == 1 && t && !t->may_run_loop && ELSE_PART * (t->run + t->runnable) < t->wall &&
	       ELSE_PART * g->ns >= (ELSE_PART - 1) * t->wall;
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
		return 0;
	}
	if (add_uneven(in, g, f)) {
		f->weight = UNEVEN_WEIGHT * (double)f->lost_ns;
		return 0;
	}
	if (g->n && (parts.python || parts.native) && is_idle(in, g)) {
		group__set_idle(in, g, f);
		polls__add(in, g, f);
	} else if (f->tid && f->tid != f->pid) {
		f->weight /= 10;
	}
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_SLEEP, out, complete, NULL);
}

FINDINGS(sleep) = { .name = "sleep", .decides_colours = true, .find = find };
