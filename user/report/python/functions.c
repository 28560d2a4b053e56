// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report functions: calls of the Python functions that the user named, with their own time (without that of other named
 * functions that they call), the shapes of tensors, and the functions that are not traced.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/shim_functions.h"
#include "model/order.h"
#include "model/stats.h"
#include "model/waits.h"
#include "output/text.h"
#include "report/report.h"
#include "util/array.h"

struct call_key {
	u64 domain, name, shapes; /* ids of texts, which are the same in all processes; shapes only in one table */
};

struct call_group {
	u32 pid; /* one that knows the texts */
	struct stats time;
	u64 self, failed, generators;
};

/* A call that has ended, and may be within one that has not. */
struct inner {
	u64 start, ns;
};

struct open_thread {
	struct inner *calls; /* in order of their ends */
	u32 n;
};

struct functions_report {
	const struct query *args;
	struct stats_pool pool;
	struct map functions, shapes; /* struct call_key -> struct call_group */
	struct map threads; /* struct thread_key -> struct open_thread */
	struct map others; /* struct other_key -> enum function_state */
	struct table *missing;
	u64 total;
};

struct other_key {
	u64 name;
	u32 pid;
	u32 unused;
};

static const struct column function_columns[] = {
	{ "domain", "Domain", VALUE_TEXT, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
	{ "min_ns", "Min", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "exceptions", "Exceptions", VALUE_U64, SHOW_COUNT },
	{ "generators", "Generators", VALUE_U64, SHOW_NEVER },
};

static const struct column shape_columns[] = {
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN }, { "shapes", "Shapes", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },	    { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },	    { "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
};

static const struct column other_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Not traced because", VALUE_TEXT, SHOW_PLAIN },
};

static int add(struct functions_report *r, struct map *groups, const struct call_key *key, u32 pid, u64 ns,
	       struct call_group **out)
{
	struct call_group *g = map__get(groups, key);

	*out = g;
	if (!g)
		return -ENOMEM;
	g->pid = pid;
	return stats__add(&g->time, &r->pool, ns);
}

/* The ns of calls within this one. Calls come in order of their ends, so those were the last ones of their thread. */
static int inner_time(struct functions_report *r, const struct thread_key *thread, u64 start, u64 end, u64 *inner)
{
	struct open_thread *t = map__get(&r->threads, thread);

	*inner = 0;
	if (!t)
		return -ENOMEM;
	while (t->n && t->calls[t->n - 1].start >= start)
		*inner += t->calls[--t->n].ns;
	return array__push(t->calls, t->n, ((struct inner){ start, end - start })) ? 0 : -ENOMEM;
}

static int on_call(const struct view *v, void *arg)
{
	struct common_fields f = common_fields__of(v->event);
	FIELDS_OF(v->event, name, domain, shapes, failed, generator);
	struct thread_key thread = { (u32)view__s64(v, f.pid), (u32)view__s64(v, f.tid) };
	u64 start = (u64)view__s64(v, f.start), end = (u64)view__s64(v, f.time), inner;
	struct call_key key = { (u64)view__s64(v, domain), (u64)view__s64(v, name), 0 };
	struct functions_report *r = arg;
	struct call_group *g;
	int err = inner_time(r, &thread, start, end, &inner);

	if (!err)
		err = add(r, &r->functions, &key, thread.pid, end - start, &g);
	if (err)
		return err;
	g->self += end - start - (inner < end - start ? inner : end - start);
	g->failed += (u64)view__s64(v, failed);
	g->generators += (u64)view__s64(v, generator);
	r->total++;
	key.shapes = (u64)view__s64(v, shapes);
	return key.shapes ? add(r, &r->shapes, &key, thread.pid, end - start, &g) : 0;
}

static int on_rows(const struct rows *rows, void *order)
{
	return order__add(order, rows);
}

static int read_calls(struct functions_report *r)
{
	struct order *order = order__new(on_call, r);
	int err = order ? query__read_kind(r->args, "functions_call", on_rows, order) : -ENOMEM;

	if (!err)
		err = order__finish(order);
	order__free(order);
	return err;
}

static const char *text_of(const struct functions_report *r, u32 pid, u64 id)
{
	const char *text = id ? names__text(r->args->names, pid, id) : "";

	return text ? text : "(name not recorded)";
}

/* The last state of each counts: what was missing at first may have been imported later. */
static int on_named(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), name, state, why);
	struct functions_report *r = arg;

	ROWS_EACH(v, rows) {
		struct other_key key = { (u64)view__s64(&v, name), (u32)view__s64(&v, f.pid), 0 };
		u32 is = (u32)view__s64(&v, state), *before = map__get(&r->others, &key), len;
		const char *text = view__text(&v, why, &len);
		char reason[256];

		if (!before)
			return -ENOMEM;
		snprintf(reason, sizeof(reason), "%.*s", (int)len, text);
		if (is == FUNCTION_REFUSED && *before != is)
			table__add(r->missing, V_U64(key.pid), V_TEXT(text_of(r, key.pid, key.name)), V_TEXT(reason));
		*before = is;
	}
	return 0;
}

static int add_missing(struct functions_report *r)
{
	int err = query__read_kind(r->args, "functions_named", on_named, r);

	MAP_EACH_ENTRY(const u32 *is, const struct other_key *k, &r->others)
		if (!err && *is == FUNCTION_MISSING)
			table__add(r->missing, V_U64(k->pid), V_TEXT(text_of(r, k->pid, k->name)),
				   V_TEXT("its module was not imported, or has no such name"));
	return err;
}

static void fill(struct functions_report *r, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "functions", "Calls of Python functions", function_columns);
	struct table *shapes = REPORT_TABLE(out, "shapes", "By the shapes of tensors", shape_columns);

	t->limit = shapes->limit = 30;
	MAP_EACH_ENTRY(struct call_group *g, const struct call_key *k, &r->functions)
		table__add(t, V_TEXT(text_of(r, g->pid, k->domain)), V_TEXT(text_of(r, g->pid, k->name)),
			   V_U64(g->time.count), V_U64(g->time.total), V_U64(g->self), V_DBL(g->time.mean),
			   V_DBL(stats__median(&g->time)), V_U64(g->time.min), V_U64(g->time.max), V_U64(g->failed),
			   V_U64(g->generators));
	table__sort(t, "total_ns");
	MAP_EACH_ENTRY(struct call_group *g, const struct call_key *k, &r->shapes)
		table__add(shapes, V_TEXT(text_of(r, g->pid, k->name)), V_TEXT(text_of(r, g->pid, k->shapes)),
			   V_U64(g->time.count), V_U64(g->time.total), V_DBL(g->time.mean),
			   V_DBL(stats__median(&g->time)));
	table__sort(shapes, "total_ns");
}

static void add_findings(struct functions_report *r, struct report_output *out)
{
	const struct call_group *top = NULL;
	u64 name = 0, generators = 0;

	MAP_EACH_ENTRY(const struct call_group *g, const struct call_key *k, &r->functions) {
		generators += g->generators;
		if (top && g->self <= top->self)
			continue;
		top = g;
		name = k->name;
	}
	if (top)
		report_output__finding(
			out, "Of the traced functions, %s took the most time itself: %s in %s call%s, %s each.",
			text_of(r, top->pid, name), TEXT_NS(top->self), TEXT_COUNT(top->time.count),
			text__s(top->time.count), TEXT_NS(top->self / top->time.count));
	if (generators)
		report_output__note(
			out,
			"%s call%s made a generator or a coroutine: the time is that of making it, not of running it.",
			TEXT_COUNT(generators), text__s(generators));
}

static int on_dropped(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), records);
	u64 *dropped = arg;

	ROWS_EACH(v, rows)
		*dropped += (u64)view__s64(&v, records);
	return 0;
}

static void free_groups(struct functions_report *r, struct map *groups)
{
	MAP_EACH(struct call_group *g, groups)
		stats__free(&g->time, &r->pool);
	map__free(groups);
}

static int run(const struct query *args, struct report_output *out)
{
	struct functions_report r = { .args = args };
	u64 dropped = 0;
	int err;

	map__init(&r.functions, sizeof(struct call_key), sizeof(struct call_group));
	map__init(&r.shapes, sizeof(struct call_key), sizeof(struct call_group));
	map__init(&r.threads, sizeof(struct thread_key), sizeof(struct open_thread));
	map__init(&r.others, sizeof(struct other_key), sizeof(u32));
	err = read_calls(&r) ?: query__read_kind(args, "functions_dropped", on_dropped, &dropped);
	if (!err) {
		fill(&r, out);
		r.missing = REPORT_TABLE(out, "not_traced", "Functions that are not traced", other_columns);
		err = add_missing(&r);
		add_findings(&r, out);
	}
	if (dropped)
		report_output__note(out, "%s call%s had no room in the process and are lost.", TEXT_COUNT(dropped),
				    text__s(dropped));
	if (!r.functions.n && !r.others.n)
		report_output__finding(
			out,
			"No call of a named function was recorded: `sonde record --function MODULE:QUALNAME` names one.");
	free_groups(&r, &r.functions);
	free_groups(&r, &r.shapes);
	MAP_EACH(struct open_thread *t, &r.threads)
		free(t->calls);
	MAPS_FREE(&r.threads, &r.others);
	return err;
}

REPORT(functions) = {
	.name = "functions",
	.doc = "calls of the Python functions that --function, --functions-trace or --torch=functions named",
	.kinds = "functions_call,functions_named",
	.run = run,
	.summary = 46,
};
