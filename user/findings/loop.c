// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/loop.h"

#include <stdio.h>

#include "findings/classify.h"
#include "output/text.h"

/* Other callbacks hardly notice a loop that runs for less than this part of the time, in short callbacks. */
#define BLOCKED_PART 5

/* Adds "the event loop had called export (api.py:12)", unless this is the function that the finding names already. */
static void add_callback(const struct finding_input *in, u32 frame, struct finding *f)
{
	struct finding_code code = { 0 };
	char text[192];

	if (frame)
		finding_code__fill(&code, in->stacks, frame);
	if (!*code.function || finding_code__is_same(&code, &f->code))
		return;
	finding_code__write(&code, " ", "the event loop had called", text, sizeof(text));
	finding__add_detail(f, text);
}

static void add_times(u64 times, u64 longest, struct finding *f)
{
	char text[128];

	snprintf(text, sizeof(text), "it blocked the event loop %llu time%s for 50 ms or longer, for at most %s", times,
		 text__s(times), TEXT_NS(longest));
	finding__add_detail(f, text);
}

void loop__add_waits(const struct finding_input *in, const struct group *g, u32 stack, struct finding *f)
{
	struct stack_parts parts = stack_parts__of(in->stacks, stack);
	u64 times = 0, longest = 0;

	if (!parts.loop || f->kind == FINDING_IDLE)
		return;
	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);

		times += cell->is_delay ? 0 : cell->long_times;
		longest = !cell->is_delay && cell->longest > longest ? cell->longest : longest;
	}
	f->is_background = false;
	f->weight = (double)f->lost_ns;
	if (!times)
		return;
	add_times(times, longest, f);
	add_callback(in, parts.callback, f);
}

void loop__add_computation(const struct finding_input *in, u32 stack, bool is_main, struct finding *f)
{
	struct stack_parts parts = stack_parts__of(in->stacks, stack);
	const struct profile *p = in->profile;
	u64 times = 0, longest = 0;

	if (!parts.loop)
		return;
	/* between two waits for events, a loop runs callbacks: the time before such a wait was theirs */
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		if (key->thread.pid != f->pid || !cell->busy_times ||
		    !stack_parts__of(in->stacks, key->stack).waits_in_loop)
			continue;
		times += cell->busy_times;
		longest = cell->busy_longest > longest ? cell->busy_longest : longest;
	}
	if (times && is_main)
		add_times(times, longest, f);
	else
		finding__add_detail(f, BLOCKED_PART * f->lost_ns < f->wall_ns ?
					       "an event loop called it" :
					       "an event loop called it, and was blocked meanwhile");
	add_callback(in, parts.callback, f);
}
