// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/polls.h"

#define POLLS_PER_S  4
#define POLLS_WEIGHT 0.03

void polls__add(const struct finding_input *in, const struct group *g, struct finding *f)
{
	if (!g->n || profile__cell(in->profile, g->cells[0])->cause != ACTIVITY_SLEEP || !*f->code.function ||
	    !g->times || g->times * 1000000000ULL / POLLS_PER_S < query__measured(in->q))
		return;
	finding__add_detail(f, "in a loop of sleeps: it polls, or a pause paces it");
	f->weight = POLLS_WEIGHT * (double)g->ns;
}
