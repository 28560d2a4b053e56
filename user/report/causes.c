// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/causes.h"

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

static void fill(const struct causes *c, const struct query *q, struct table *t)
{
	const struct cause *r;
	char title[64];

	for (u32 i = 0; (r = causes__ranked(c, i)) != NULL; i++) {
		table__add(t, V_U64(r->pid), V_TEXT(names__title(q->names, title, sizeof(title), r->pid, 0)),
			   V_TEXT(cause__key(r->kind)), V_U64(r->ns), V_DBL(table__percent(r->ns, r->wall_ns)),
			   V_U64(r->threads), V_U64(r->times),
			   r->times ? V_DBL((double)r->ns / (double)r->times) : V_NONE, V_TEXT(r->call),
			   r->call ? V_U64(r->call_ns) : V_NONE, r->call ? V_U64(r->call_times) : V_NONE);
	}
}

int causes__report(struct causes *c, const struct activity *activity, const struct query *q, struct report_output *out)
{
	struct table *t =
		REPORT_TABLE(out, "causes", "Processes: where the time of their threads went, by cause", columns);
	int err = causes__rank(c, activity);

	t->limit = 10;
	if (!err)
		fill(c, q, t);
	return err;
}
