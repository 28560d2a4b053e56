// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report gc: CPython's garbage collections by process and generation, and the code that the longest delayed. */
#include <errno.h>
#include <stdlib.h>

#include "model/stacks.h"
#include "model/stats.h"
#include "output/text.h"
#include "report/report.h"
#include "util/map.h"

#define LONGEST 50

struct gc_key {
	u32 pid;
	s32 generation;
};

struct gc_group {
	struct stats time;
	u64 inside; /* the ns within the selected time */
	u64 collected, uncollectable;
	bool knows_uncollectable;
};

struct pause {
	u64 start, ns;
	u32 pid, tid, stack;
	s32 generation;
	s64 collected;
	bool open;
};

struct gc_report {
	const struct query *args;
	struct map groups, processes; /* struct gc_key -> struct gc_group; pid -> struct gc_group */
	struct stats_pool pool;
	struct pause longest[LONGEST];
	u32 n_longest;
};

static int group__add(struct gc_report *g, struct gc_group *group, const struct pause *p, s64 uncollectable)
{
	if (!group)
		return -ENOMEM;
	group->inside += query__inside(g->args, p->start, p->start + p->ns);
	if (p->collected > 0)
		group->collected += (u64)p->collected;
	group->knows_uncollectable |= uncollectable >= 0;
	if (uncollectable > 0)
		group->uncollectable += (u64)uncollectable;
	return stats__add(&group->time, &g->pool, p->ns);
}

static void keep_longest(struct gc_report *g, const struct pause *p)
{
	struct pause *shortest = &g->longest[0];

	if (g->n_longest < LONGEST) {
		g->longest[g->n_longest++] = *p;
		return;
	}
	for (u32 i = 1; i < LONGEST; i++)
		if (g->longest[i].ns < shortest->ns)
			shortest = &g->longest[i];
	if (p->ns > shortest->ns)
		*shortest = *p;
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), generation, collected, uncollectable, stack);
	struct gc_report *g = arg;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct pause p = {
			.start = (u64)view__s64(&v, f.start),
			.ns = (u64)view__s64(&v, f.time) - (u64)view__s64(&v, f.start),
			.pid = (u32)view__s64(&v, f.pid),
			.tid = (u32)view__s64(&v, f.tid),
			.stack = (u32)view__s64(&v, stack),
			.generation = (s32)view__s64(&v, generation),
			.collected = view__s64(&v, collected),
			.open = view__s64(&v, f.flags) & EVENT_OPEN,
		};
		struct gc_key key = { p.pid, p.generation };

		err = group__add(g, map__get(&g->groups, &key), &p, view__s64(&v, uncollectable));
		if (!err)
			err = group__add(g, map__get(&g->processes, &p.pid), &p, view__s64(&v, uncollectable));
		keep_longest(g, &p);
	}
	return err;
}

static const struct column generation_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "generation", "Generation", VALUE_S64, SHOW_PLAIN },
	{ "collections", "Collections", VALUE_U64, SHOW_COUNT },
	{ "pause_ns", "Paused", VALUE_U64, SHOW_NS },
	{ "time_percent", "of the time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "p99_ns", "p99", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "collected", "Objects freed", VALUE_U64, SHOW_COUNT },
	{ "uncollectable", "Uncollectable", VALUE_U64, SHOW_COUNT },
};

static const struct column pause_columns[] = {
	{ "start_ns", "At (s)", VALUE_S64, SHOW_SECONDS },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "generation", "Generation", VALUE_S64, SHOW_PLAIN },
	{ "pause_ns", "Paused", VALUE_U64, SHOW_NS },
	{ "collected", "Objects freed", VALUE_S64, SHOW_COUNT },
	{ "code", "In", VALUE_TEXT, SHOW_PLAIN },
};

static int compare_pauses(const void *a, const void *b)
{
	const struct pause *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->start > y->start) - (x->start < y->start);
}

/* Returns the user's code in a stack, NULL without a stack. */
static const char *code_of(const struct stacks *s, u32 stack, char *buf, size_t size)
{
	return s && stacks__frame(s, stack) ? stacks__label(s, stacks__top_user(s, stack), buf, size) : NULL;
}

static double percent_of(const struct gc_report *g, u64 ns)
{
	u64 duration = query__duration(g->args);

	return table__percent(ns, duration);
}

static void fill(struct gc_report *g, const struct stacks *s, struct report_output *out)
{
	struct table *generations, *pauses;
	char code[STACK_LABEL];

	generations = REPORT_TABLE(out, "generations", "Collections by process and generation", generation_columns);
	pauses = REPORT_TABLE(out, "pauses", "The longest: only this thread's code is shown, others waited for the GIL",
			      pause_columns);
	pauses->limit = 20;
	MAP_EACH_ENTRY(struct gc_group *o, const struct gc_key *k, &g->groups)
		table__add(generations, V_U64(k->pid), V_TEXT(NAMES_TITLE(g->args->names, k->pid, 0)),
			   k->generation < 0 ? V_NONE : V_S64(k->generation), V_U64(o->time.count),
			   V_U64(o->time.total), V_DBL(percent_of(g, o->inside)), V_DBL(stats__median(&o->time)),
			   V_U64(stats__percentile(&o->time, 99)), V_U64(o->time.max), V_U64(o->collected),
			   o->knows_uncollectable ? V_U64(o->uncollectable) : V_NONE);
	table__sort(generations, "pause_ns");
	qsort(g->longest, g->n_longest, sizeof(g->longest[0]), compare_pauses);
	for (u32 i = 0; i < g->n_longest; i++) {
		const struct pause *p = &g->longest[i];

		table__add(pauses, report__moment(g->args, p->start), V_U64(p->pid), V_U64(p->tid),
			   V_TEXT(NAMES_TITLE(g->args->names, p->pid, p->tid)),
			   p->generation < 0 ? V_NONE : V_S64(p->generation), V_U64(p->ns),
			   p->collected < 0 ? V_NONE : V_S64(p->collected),
			   V_TEXT(code_of(s, p->stack, code, sizeof(code))));
	}
}

/* Adds a finding on the process that spent the largest part of its time in collections. */
static void add_findings(struct gc_report *g, const struct stacks *s, struct report_output *out)
{
	char who[64], code[STACK_LABEL];
	const struct gc_group *worst = NULL;
	const struct pause *p = NULL;
	const char *in;
	u32 pid = 0;

	for (u32 i = 0; i < g->processes.n; i++) {
		const struct gc_group *o = map__value(&g->processes, i);

		if (worst && o->time.total <= worst->time.total)
			continue;
		worst = o;
		pid = *(const u32 *)map__key(&g->processes, i);
	}
	for (u32 i = 0; i < g->n_longest && !p; i++)
		if (g->longest[i].pid == pid)
			p = &g->longest[i];
	if (!worst || !p)
		return;
	in = code_of(s, p->stack, code, sizeof(code));
	report_output__finding(
		out, "%s: %llu garbage collection%s stopped it for %.2f%% of the time (%s); the longest took %s%s%s.",
		names__label(g->args->names, who, sizeof(who), pid, 0), worst->time.count, text__s(worst->time.count),
		percent_of(g, worst->inside), TEXT_NS(worst->time.total), TEXT_NS(p->ns), in ? ", in " : "",
		in ? in : "");
}

static void free_groups(struct gc_report *g, struct map *m)
{
	for (u32 i = 0; i < m->n; i++)
		stats__free(&((struct gc_group *)map__value(m, i))->time, &g->pool);
	map__free(m);
}

static int run(const struct query *args, struct report_output *out)
{
	struct gc_report g = { .args = args };
	struct stacks *s = NULL;
	int err;

	map__init(&g.groups, sizeof(struct gc_key), sizeof(struct gc_group));
	map__init(&g.processes, sizeof(u32), sizeof(struct gc_group));
	err = query__read_kind(args, "python_gc", on_rows, &g);
	if (!err)
		err = stacks__load(&s, args->trace);
	if (!err) {
		fill(&g, s, out);
		add_findings(&g, s, out);
	}
	if (!g.groups.n)
		report__nothing(args, out, "No garbage collection was recorded", "python");
	stacks__free(s);
	free_groups(&g, &g.groups);
	free_groups(&g, &g.processes);
	return err;
}

REPORT(gc) = {
	.name = "gc",
	.doc = "CPython's garbage collections by process and generation, the longest with the code they held up",
	.kinds = "python_gc",
	.run = run,
};
