// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/attach/slice_budget.h"

#define SECOND 1e9
/* Always allowed: 0.1% of one CPU. */
#define FREE_SHARE 0.001
/* What was not used is kept up to this. */
#define UNUSED_MAX (SECOND / 20)

void slice_budget__update(struct slice_budget *b, double ns, double run, double cost, double limit)
{
	double allowed = limit * run > FREE_SHARE * ns ? limit * run : FREE_SHARE * ns;
	double debt_max = ns > 0 ? allowed / ns * SLICE_DETACHED_MAX : 0;

	b->ns += allowed - cost;
	if (b->ns > UNUSED_MAX)
		b->ns = UNUSED_MAX;
	if (b->ns < -debt_max)
		b->ns = -debt_max;
}
