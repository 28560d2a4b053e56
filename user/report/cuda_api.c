// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts calls of the CUDA runtime and driver by function (nsys's cuda_api_sum) and by thread. */
#include "report/cuda_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/order.h"
#include "output/text.h"
#include "report/api_columns.h"
#include "util/array.h"

/*
 * Returns the number of a function: that of its probe or, if the trace names no probes, of its event kind. Probes of
 * one name (a function in several libraries) share a number.
 */
static int function_of(struct cuda_api *a, const struct schema_event *e, u16 probe, u32 *out)
{
	const char *name, *known = names__probe(a->names, probe);
	u32 i, raw = known ? probe : 0x10000u | e->id, *function = map__find(&a->functions, &raw);

	if (!function) {
		function = map__get(&a->functions, &raw);
		if (!function)
			return -ENOMEM;
		*function = raw;
		for (i = 0; known && i < a->functions.n; i++) {
			name = names__probe(a->names, (u16) * (const u32 *)map__key(&a->functions, i));
			if (*(const u32 *)map__key(&a->functions, i) < 0x10000 && name && !strcmp(name, known)) {
				*function = *(const u32 *)map__key(&a->functions, i);
				break;
			}
		}
	}
	*out = *function;
	return 0;
}

static const char *function_name(const struct cuda_api *a, u32 function)
{
	const struct schema_event *e;
	const char *name;

	name = function < 0x10000 ? names__probe(a->names, (u16)function) : NULL;
	e = name ? NULL : schema__event_by_id(a->schema, (u16)function);
	return name ? name : e ? e->name : "?";
}

static bool is_error(s64 ret)
{
	/* cudaErrorNotReady answers a query and is no failure. */
	return ret && ret != 600;
}

static int group__add(struct cuda_api *a, struct cuda_group *g, u64 ns, bool timed, bool failed)
{
	if (!g)
		return -ENOMEM;
	g->errors += failed;
	g->untimed += !timed;
	return timed ? stats__add(&g->time, &a->pool, ns) : 0;
}

/* A nested call's time is part of the outer call's. */
static void on_inner(const struct nesting_call *call, void *arg)
{
	struct cuda_call_key key = { call->pid, call->tid, call->function, 0 };
	struct cuda_api *a = arg;
	struct cuda_group *g = map__find(&a->by_thread, &key);

	a->total -= call->end - call->start;
	a->inner++;
	if (g)
		g->inner_ns += call->end - call->start;
}

static int on_returned(struct cuda_api *a, const struct cuda_return_key *key, u64 start, u64 end)
{
	struct nesting_call call = {
		.pid = key->call.pid, .tid = key->call.tid, .function = key->call.function, .start = start, .end = end
	};
	u64 *n = map__get(&a->returns, key);

	if (!n)
		return -ENOMEM;
	++*n;
	a->total += end - start;
	return nesting__add(&a->nesting, &call);
}

static int on_call(const struct view *v, void *arg)
{
	struct cuda_api *a = arg;
	const struct common_fields *f = &a->fields[v->event - a->schema->events];
	u64 start = (u64)view__s64(v, f->start), ns = (u64)view__s64(v, f->time) - start;
	u16 flags = (u16)view__s64(v, f->flags);
	bool returned = !(flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION));
	struct cuda_return_key key = { .call = { (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid), 0, 0 } };
	int err = function_of(a, v->event, (u16)view__s64(v, f->probe), &key.call.function);

	if (err)
		return err;
	/* cudaError_t and CUresult have 32 bits: the register's upper half is undefined. */
	key.ret = (s32)view__s64(v, f->ret);
	err = group__add(a, map__get(&a->by_thread, &key.call), ns, returned, returned && is_error(key.ret));
	if (!err)
		err = group__add(a, map__get(&a->by_name, &key.call.function), ns, returned,
				 returned && is_error(key.ret));
	a->calls++;
	a->untimed += !returned;
	if ((flags & EVENT_OPEN) && ns >= a->longest_open) {
		a->longest_open = ns;
		a->stuck = key.call;
	}
	a->open += !!(flags & EVENT_OPEN);
	return err || !returned ? err : on_returned(a, &key, start, start + ns);
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(((struct cuda_api *)arg)->order, rows);
}

/* Times cover the calls in Num Calls. Calls without a duration are in Untimed, shown only if there are any. */
#define SUMMARY_COLUMNS(show_untimed)                                       \
	{                                                                   \
		API_COLUMNS, { "errors", "Errors", VALUE_U64, SHOW_NEVER }, \
		{                                                           \
			"untimed", "Untimed", VALUE_U64, show_untimed       \
		}                                                           \
	}

static const struct column summary_columns[] = SUMMARY_COLUMNS(SHOW_NEVER);
static const struct column untimed_columns[] = SUMMARY_COLUMNS(SHOW_COUNT);

static const struct column calls_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	  { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "thread", "Thread", VALUE_TEXT, SHOW_PLAIN },	  { "name", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },	  { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },	  { "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
	{ "min_ns", "Min", VALUE_U64, SHOW_NS },	  { "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "stddev_ns", "StdDev", VALUE_DOUBLE, SHOW_NS }, { "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column returns_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN }, { "ret", "Returned", VALUE_S64, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
};

struct table *cuda_api__table(struct cuda_api *a, struct report_output *out, const char *name)
{
	struct table *t = a->untimed > a->open ? REPORT_TABLE(out, name, "CUDA calls by function", untimed_columns) :
						 REPORT_TABLE(out, name, "CUDA calls by function", summary_columns);
	struct cuda_group *g;
	bool timed;
	u32 i;

	for (i = 0; i < a->by_name.n; i++) {
		g = map__value(&a->by_name, i);
		timed = g->time.count;
		table__add(t, V_DBL(table__percent(g->time.total, a->total)), V_U64(g->time.total),
			   V_U64(g->time.count), timed ? V_DBL(g->time.mean) : V_NONE,
			   timed ? V_DBL(stats__median(&g->time)) : V_NONE, timed ? V_U64(g->time.min) : V_NONE,
			   timed ? V_U64(g->time.max) : V_NONE, timed ? V_DBL(stats__stddev(&g->time)) : V_NONE,
			   V_TEXT(function_name(a, *(const u32 *)map__key(&a->by_name, i))), V_U64(g->errors),
			   V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
	return t;
}

static void fill_calls(struct cuda_api *a, struct table *t)
{
	const struct cuda_call_key *k;
	struct cuda_group *g;
	bool timed;
	u32 i;

	for (i = 0; i < a->by_thread.n; i++) {
		g = map__value(&a->by_thread, i);
		k = map__key(&a->by_thread, i);
		timed = g->time.count;
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(names__comm(a->names, k->pid, k->tid)),
			   V_TEXT(function_name(a, k->function)), V_U64(g->time.count), V_U64(g->time.total),
			   timed ? V_DBL(g->time.mean) : V_NONE, timed ? V_DBL(stats__median(&g->time)) : V_NONE,
			   timed ? V_U64(g->time.min) : V_NONE, timed ? V_U64(g->time.max) : V_NONE,
			   timed ? V_DBL(stats__stddev(&g->time)) : V_NONE, V_U64(g->errors), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
}

/* CSV and JSON have every return value; people see only failures. */
static void fill_returns(struct cuda_api *a, struct table *all, struct table *failures)
{
	const struct cuda_return_key *k;
	struct table *t;
	u64 calls;
	u32 i;

	for (i = 0; i < a->returns.n; i++) {
		k = map__key(&a->returns, i);
		calls = *(u64 *)map__value(&a->returns, i);
		for (t = all; t; t = t == all && is_error(k->ret) ? failures : NULL)
			table__add(t, V_U64(k->call.pid), V_U64(k->call.tid),
				   V_TEXT(function_name(a, k->call.function)), V_S64(k->ret), V_U64(calls));
	}
	table__sort(all, "calls");
	table__sort(failures, "calls");
}

/* Returns the error that one thread got most often, NULL if there is none. */
static const struct cuda_return_key *worst_error(const struct cuda_api *a)
{
	const struct cuda_return_key *k, *worst = NULL;
	u64 n, most = 0;
	u32 i;

	for (i = 0; i < a->returns.n; i++) {
		k = map__key(&a->returns, i);
		n = *(const u64 *)map__value(&a->returns, i);
		if (is_error(k->ret) && n > most) {
			most = n;
			worst = k;
		}
	}
	return worst;
}

void cuda_api__add_findings(struct cuda_api *a, struct report_output *out, const struct table *summary)
{
	const struct cuda_return_key *worst = worst_error(a);
	char total[TEXT_NUMBER], count[TEXT_NUMBER], who[64];
	const struct value *top;
	u64 calls, errors = 0;
	u32 i;

	if (!a->calls || !summary->n_rows)
		return;
	top = table__row(summary, 0);
	calls = a->calls - a->untimed;
	if (calls) {
		report_output__finding(out, "%s CUDA call%s took %s of their threads' time; %.1f%% of that in %s.",
				       text__count(count, sizeof(count), calls), text__s(calls),
				       text__ns(total, sizeof(total), a->total), top[API_PERCENT].d,
				       top[API_NAME].text);
		REPORT_FIGURES(out, FIGURE("calls", V_U64(calls)), FIGURE("total_ns", V_U64(a->total)),
			       FIGURE("name", top[API_NAME]), FIGURE("time_percent", top[API_PERCENT]));
	}
	calls = a->untimed - a->open;
	if (calls)
		report_output__finding(out, "%s %sCUDA call%s recorded without a duration.",
				       text__count(count, sizeof(count), calls), calls < a->calls ? "more " : "",
				       calls == 1 ? " was" : "s were");
	for (i = 0; i < summary->n_rows; i++)
		errors += table__row(summary, i)[API_COLUMN_COUNT].u;
	if (errors && worst)
		report_output__finding(out, "%s call%s returned an error; most often %s %lld in %s.",
				       text__count(count, sizeof(count), errors), text__s(errors),
				       function_name(a, worst->call.function), worst->ret,
				       names__label(a->names, who, sizeof(who), worst->call.pid, worst->call.tid));
	if (a->open)
		report_output__finding(out, "%llu call%s had not returned at the end; the longest, %s of %s, for %s.",
				       a->open, text__s(a->open), function_name(a, a->stuck.function),
				       names__label(a->names, who, sizeof(who), a->stuck.pid, a->stuck.tid),
				       text__ns(total, sizeof(total), a->longest_open));
	if (a->inner)
		report_output__note(
			out, "%llu call%s made within others: their time is also in those', and counted once in all.",
			a->inner, a->inner == 1 ? " was" : "s were");
	if (a->pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
}

static bool is_cuda_call(const struct cuda_api *a, const struct schema_event *e)
{
	static const char *const families[] = { "cuda", "cudadrv" };
	const struct schema_family *f;
	u32 i;

	for (i = 0; i < ARRAY_LEN(families); i++) {
		f = schema__family(a->schema, families[i]);
		if (f && e->is_call && EVENT_FAMILY(e->id) == f->id)
			return true;
	}
	return false;
}

static int read_calls(struct cuda_api *a, const struct query *args)
{
	const struct schema_event **kinds = calloc(a->schema->n_events + 1, sizeof(*kinds));
	u32 i, n = 0;
	int err = 0;

	a->fields = calloc(a->schema->n_events + 1, sizeof(*a->fields));
	a->order = order__new(on_call, a);
	for (i = 0; kinds && a->fields && i < a->schema->n_events; i++) {
		if (!is_cuda_call(a, &a->schema->events[i]))
			continue;
		kinds[n++] = &a->schema->events[i];
		a->fields[i] = common_fields__of(&a->schema->events[i]);
	}
	if (!kinds || !a->fields || !a->order)
		err = -ENOMEM;
	else if (n)
		err = query__read(args, kinds, on_rows, a);
	if (!err)
		err = order__finish(a->order);
	order__free(a->order);
	a->order = NULL;
	free(a->fields);
	a->fields = NULL;
	free(kinds);
	return err;
}

static void free_groups(struct cuda_api *a, struct map *m)
{
	u32 i;

	for (i = 0; i < m->n; i++)
		stats__free(&((struct cuda_group *)map__value(m, i))->time, &a->pool);
	map__free(m);
}

int cuda_api__read(struct cuda_api *a, const struct query *args)
{
	*a = (struct cuda_api){ .schema = trace__schema(args->trace), .names = args->names };
	map__init(&a->by_thread, sizeof(struct cuda_call_key), sizeof(struct cuda_group));
	map__init(&a->by_name, sizeof(u32), sizeof(struct cuda_group));
	map__init(&a->returns, sizeof(struct cuda_return_key), sizeof(u64));
	map__init(&a->functions, sizeof(u32), sizeof(u32));
	nesting__init(&a->nesting, on_inner, a);
	return read_calls(a, args);
}

void cuda_api__free(struct cuda_api *a)
{
	free_groups(a, &a->by_thread);
	free_groups(a, &a->by_name);
	map__free(&a->returns);
	map__free(&a->functions);
	nesting__free(&a->nesting);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *summary, *failures, *calls, *returns;
	struct cuda_api a;
	int err = cuda_api__read(&a, args);

	summary = cuda_api__table(&a, out, "summary");
	failures = REPORT_TABLE(out, "failures", "Calls that returned an error", returns_columns);
	calls = REPORT_TABLE(out, "calls", "CUDA calls by thread", calls_columns);
	returns = REPORT_MACHINE_TABLE(out, "returns", "What the calls returned", returns_columns);
	calls->limit = 30;
	fill_calls(&a, calls);
	fill_returns(&a, returns, failures);
	if (!a.calls)
		report__nothing(args, out, "No CUDA calls were recorded", "cuda");
	cuda_api__add_findings(&a, out, summary);
	cuda_api__free(&a);
	return err;
}

REPORT(cuda_api) = {
	.name = "cuda-api",
	.doc = "calls of the CUDA runtime and driver: count, time and errors by function and thread",
	.kinds = "cuda,cudadrv",
	.run = run,
};
