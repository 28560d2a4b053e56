// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/causes.h"

#include <errno.h>
#include <stdlib.h>

#include "findings/group.h"
#include "util/compare.h"

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "cause", "Cause", VALUE_TEXT, SHOW_PLAIN },
	{ "ns", "Time", VALUE_U64, SHOW_NS },
	{ "percent", "of these threads' (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	{ "times", "Times", VALUE_U64, SHOW_COUNT },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "what", "Main wait", VALUE_TEXT, SHOW_PLAIN },
	{ "what_ns", "Time of that wait", VALUE_U64, SHOW_NEVER },
	{ "what_times", "Times of that wait", VALUE_U64, SHOW_NEVER },
};

/* A process's time of one kind */
struct cause {
	double weight;
	const struct group *group;
};

COMPARE_BY(by_weight, struct cause, DESCENDING(weight), ASCENDING(group->pid))

static void add_row(const struct finding_input *in, const struct group *g, struct table *t)
{
	struct group_most reason = group__most(in, g, GROUP_REASON);
	const char *call = NULL;

	/* the call of a wait for a CPU is that of the wait before it */
	if (reason.value < ACTIVITY_CAUSE_BASE && finding_kind__colour(g->code) != COLOUR_CPU)
		call = activity__name(in->activity, (u32)reason.value);
	table__add(t, V_U64(g->pid), V_TEXT(NAMES_TITLE(in->q->names, g->pid, 0)), V_TEXT(finding_kind__key(g->code)),
		   V_U64(g->ns), V_DBL(table__percent(g->ns, g->wall_ns)), V_U64(g->threads), V_U64(g->times),
		   g->times ? V_DBL((double)g->ns / (double)g->times) : V_NONE, V_TEXT(call),
		   call ? V_U64(reason.ns) : V_NONE, call ? V_U64(reason.times) : V_NONE);
}

/* Ranks causes as findings are ranked. */
static int add_rows(const struct finding_input *in, const struct groups *groups, struct table *t)
{
	struct cause *causes = calloc((size_t)groups->n + 1, sizeof(*causes));
	u64 measured = query__measured(in->q);

	if (!causes)
		return -ENOMEM;
	for (u32 i = 0; i < groups->n; i++) {
		const struct group *g = &groups->list[i];

		causes[i].group = g;
		causes[i].weight =
			(double)g->ns * finding_kind__weight(g->code) * findings__short_factor(g->ns, measured);
	}
	qsort(causes, groups->n, sizeof(*causes), by_weight);
	for (u32 i = 0; i < groups->n; i++)
		if (causes[i].group->ns)
			add_row(in, causes[i].group, t);
	free(causes);
	return 0;
}

int causes__report(const struct findings *findings, struct report_output *out)
{
	const struct finding_input *in = findings__input(findings);
	struct table *t =
		REPORT_TABLE(out, "causes", "Processes: where the time of their threads went, by cause", columns);
	struct groups groups;
	int err = groups__make(&groups, in, ~FINDING_BIT(FINDING_NONE), GROUPS_KIND);

	t->limit = 10;
	if (!err)
		err = add_rows(in, &groups, t);
	groups__free(&groups);
	return err;
}
