// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report cuda-api: calls of the CUDA runtime and driver by function (nsys's cuda_api_sum) and by thread. */
#include "report/gpu/cuda_api.h"

#include "findings/about.h"
#include "output/text.h"
#include "report/api_columns.h"
#include "report/report.h"

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

struct table *cuda_api__table(const struct cuda_calls *a, struct report_output *out, const char *name)
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
			   V_TEXT(cuda_calls__function_name(a, *(const u32 *)map__key(&a->by_name, i))),
			   V_U64(g->errors), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
	return t;
}

static void fill_calls(const struct cuda_calls *a, struct table *t)
{
	const struct cuda_call_key *k;
	struct cuda_group *g;
	bool timed;
	u32 i;

	for (i = 0; i < a->by_thread.n; i++) {
		g = map__value(&a->by_thread, i);
		k = map__key(&a->by_thread, i);
		timed = g->time.count;
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(a->names, k->pid, k->tid)),
			   V_TEXT(cuda_calls__function_name(a, k->function)), V_U64(g->time.count),
			   V_U64(g->time.total), timed ? V_DBL(g->time.mean) : V_NONE,
			   timed ? V_DBL(stats__median(&g->time)) : V_NONE, timed ? V_U64(g->time.min) : V_NONE,
			   timed ? V_U64(g->time.max) : V_NONE, timed ? V_DBL(stats__stddev(&g->time)) : V_NONE,
			   V_U64(g->errors), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
}

/* CSV and JSON have every return value; people see only failures. */
static void fill_returns(const struct cuda_calls *a, struct table *all, struct table *failures)
{
	const struct cuda_return_key *k;
	struct table *t;
	u64 calls;
	u32 i;

	for (i = 0; i < a->returns.n; i++) {
		k = map__key(&a->returns, i);
		calls = *(u64 *)map__value(&a->returns, i);
		for (t = all; t; t = t == all && cuda_calls__is_error(k->ret) ? failures : NULL)
			table__add(t, V_U64(k->call.pid), V_U64(k->call.tid),
				   V_TEXT(cuda_calls__function_name(a, k->call.function)), V_S64(k->ret), V_U64(calls));
	}
	table__sort(all, "calls");
	table__sort(failures, "calls");
}

void cuda_api__add_notes(const struct cuda_calls *a, struct report_output *out)
{
	u64 untimed = a->untimed - a->open;

	if (untimed)
		report_output__note(out, "%s %sCUDA call%s recorded without a duration.", TEXT_COUNT(untimed),
				    untimed < a->calls ? "more " : "", untimed == 1 ? " was" : "s were");
	if (a->inner)
		report_output__note(
			out, "%llu call%s made within others: their time is also in those', and counted once in all.",
			a->inner, a->inner == 1 ? " was" : "s were");
	if (a->pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *failures, *calls, *returns;
	struct cuda_calls a;
	struct finding_input in = { .q = args, .cuda = &a };
	int err = cuda_calls__read(&a, args);

	cuda_api__table(&a, out, "summary");
	failures = REPORT_TABLE(out, "failures", "Calls that returned an error", returns_columns);
	calls = REPORT_TABLE(out, "calls", "CUDA calls by thread", calls_columns);
	returns = REPORT_MACHINE_TABLE(out, "returns", "What the calls returned", returns_columns);
	calls->limit = 30;
	fill_calls(&a, calls);
	fill_returns(&a, returns, failures);
	if (!a.calls)
		report__nothing(args, out, "No CUDA calls were recorded", "cuda");
	if (!err)
		err = findings__add_about(&in, findings__find_cuda, out);
	cuda_api__add_notes(&a, out);
	cuda_calls__free(&a);
	return err;
}

REPORT(cuda_api) = {
	.name = "cuda-api",
	.doc = "calls of the CUDA runtime and driver: count, time and errors by function and thread",
	.kinds = "cuda,cudadrv",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_CUDA,
};
