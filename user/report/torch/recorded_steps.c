// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/torch/recorded_steps.h"

#include "output/text.h"

void recorded_steps__add(const struct torch_rests *rests, const struct query *q, struct report_output *out)
{
	u64 processes = 0;
	double recorded;
	char steps[96] = "";

	for (u32 i = 0; i < rests->n; i++)
		processes += !i || rests->list[i - 1].pid != rests->list[i].pid;
	if (!processes)
		return;
	recorded = 100 - table__percent(rests->ns, query__duration(q) * processes);
	if (rests->steps)
		snprintf(steps, sizeof(steps), "%s of %s steps, ", TEXT_COUNT(rests->recorded_steps),
			 TEXT_COUNT(rests->steps));
	report_output__finding(
		out,
		"These are the calls of %s%.1f%% of the time: recording all would cost the program more than 2%% of its CPU time (--torch-budget).",
		steps, recorded);
	REPORT_FIGURES(out, FIGURE("recorded_steps", V_U64(rests->recorded_steps)),
		       FIGURE("steps", V_U64(rests->steps)), FIGURE("recorded_percent", V_DBL(recorded)));
}
