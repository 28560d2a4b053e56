// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/causes.h"

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "cause", "Cause", VALUE_TEXT, SHOW_PLAIN },
	{ "ns", "Time", VALUE_U64, SHOW_NS },
	{ "percent", "of its threads' (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	{ "times", "Times", VALUE_U64, SHOW_COUNT },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "what", "Mostly in", VALUE_TEXT, SHOW_PLAIN },
	{ "what_ns", "Time in it", VALUE_U64, SHOW_NEVER },
	{ "what_times", "Times in it", VALUE_U64, SHOW_NEVER },
};

static void fill(const struct causes *c, const struct query *q, struct table *t)
{
	const struct cause *r;

	for (u32 i = 0; (r = causes__ranked(c, i)) != NULL; i++) {
		table__add(t, V_U64(r->pid), V_TEXT(names__comm(q->names, r->pid, 0)), V_TEXT(cause__key(r->kind)),
			   V_U64(r->ns), V_DBL(table__percent(r->ns, r->wall_ns)), V_U64(r->threads), V_U64(r->times),
			   r->times ? V_DBL((double)r->ns / (double)r->times) : V_NONE, V_TEXT(r->what),
			   r->what ? V_U64(r->what_ns) : V_NONE, r->what ? V_U64(r->what_times) : V_NONE);
	}
}

/*
 * Does this cause become a finding? Each process's first cause does. If that is running on a CPU, the first cause
 * that kept the process from running does too. Idle causes do only if there is no other.
 */
static bool is_said(const struct causes *c, u32 i, u32 said)
{
	const struct cause *r = causes__ranked(c, i), *other;
	u32 before = 0, worked = 0;

	for (u32 k = 0; k < i; k++) {
		other = causes__ranked(c, k);
		before += other->pid == r->pid;
		worked += other->pid == r->pid && other->kind == CAUSE_RUN;
	}
	if (before)
		return before == 1 && worked && !r->tier;
	return !said || r->tier < 2;
}

static void add_figures(const struct cause *r, struct report_output *out)
{
	REPORT_FIGURES(out, FIGURE("pid", V_U64(r->pid)), FIGURE("cause", V_TEXT(cause__key(r->kind))),
		       FIGURE("ns", V_U64(r->ns)), FIGURE("wall_ns", V_U64(r->wall_ns)),
		       FIGURE("percent", V_DBL(table__percent(r->ns, r->wall_ns))),
		       FIGURE("threads", V_U64(r->threads)), FIGURE("times", V_U64(r->times)),
		       FIGURE("what", V_TEXT(r->what)), FIGURE("what_ns", r->what ? V_U64(r->what_ns) : V_NONE),
		       FIGURE("what_times", r->what ? V_U64(r->what_times) : V_NONE), FIGURE("file", V_TEXT(r->file)));
}

static int say(const struct causes *c, const struct query *q, struct report_output *out, u32 max)
{
	const struct cause *r;
	char text[1024];
	u32 said = 0;
	int err = 0;

	for (u32 i = 0; !err && said < max && (r = causes__ranked(c, i)) != NULL; i++) {
		if (!is_said(c, i, said))
			continue;
		err = cause__say(c, q, r, text, sizeof(text));
		report_output__finding(out, "%s", text);
		add_figures(r, out);
		said++;
	}
	return err;
}

int causes__report(struct causes *c, const struct activity *activity, const struct query *q, struct report_output *out,
		   u32 max)
{
	struct table *t = REPORT_TABLE(out, "causes", "What held processes up, most costly first", columns);
	int err = causes__rank(c, activity);

	t->limit = 10;
	if (err)
		return err;
	fill(c, q, t);
	return say(c, q, out, max);
}
