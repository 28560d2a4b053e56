// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report math: calls of mathematics libraries by function, sizes and types, and the arithmetic that they request. */
#include "model/math_calls.h"
#include "output/text.h"
#include "report/api_columns.h"
#include "report/report.h"

/* nsys's columns of calls by name, with what these calls computed */
static const struct column function_columns[] = {
	API_COLUMNS,
	{ "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "flop", "GFLOP", VALUE_U64, SHOW_GIGA },
	{ "kernels", "Kernels", VALUE_U64, SHOW_NEVER },
	{ "gpu_ns", "On GPU", VALUE_U64, SHOW_NEVER },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column product_columns[] = {
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "sizes", "Sizes", VALUE_TEXT, SHOW_PLAIN },
	{ "types", "Types", VALUE_TEXT, SHOW_PLAIN },
	{ "arithmetic", "Arithmetic", VALUE_TEXT, SHOW_NEVER },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "flop", "GFLOP", VALUE_U64, SHOW_GIGA },
	{ "kernels", "Kernels", VALUE_U64, SHOW_NEVER },
	{ "gpu_ns", "On GPU", VALUE_U64, SHOW_NEVER },
	{ "flop_per_s", "GFLOP/s", VALUE_DOUBLE, SHOW_NEVER },
	{ "peak_percent", "Peak (%)", VALUE_DOUBLE, SHOW_NEVER },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static void fill_functions(struct math_calls *a, struct table *t)
{
	MAP_EACH_ENTRY(struct math_function *f, const u32 *function, &a->functions) {
		bool timed = f->time.count;

		table__add(t, V_DBL(table__percent(f->time.total, a->total)), V_U64(f->time.total),
			   V_U64(f->time.count), timed ? V_DBL(f->time.mean) : V_NONE,
			   timed ? V_DBL(stats__median(&f->time)) : V_NONE, timed ? V_U64(f->time.min) : V_NONE,
			   timed ? V_U64(f->time.max) : V_NONE, timed ? V_DBL(stats__stddev(&f->time)) : V_NONE,
			   V_TEXT(math_calls__function(a, *function)), V_U64(f->errors),
			   f->has_flop ? V_U64(f->flop) : V_NONE, f->kernels ? V_U64(f->kernels) : V_NONE,
			   f->kernels ? V_U64(f->device_ns) : V_NONE, V_U64(f->untimed));
	}
	table__sort(t, "total_ns");
	if (a->kernels)
		table__show(t, "gpu_ns", SHOW_NS);
}

/* Returns the FLOP that the devices could have done while the kernels ran; 0: not known. */
static double possible_of(const struct math_calls *a, const struct math_group *g)
{
	if (a->args->peak_tflops > 0)
		return a->args->peak_tflops * 1e3 * (double)g->device_ns;
	return g->has_unknown_peak ? 0 : g->possible;
}

static void fill_products(struct math_calls *a, struct table *t)
{
	char sizes[96], types[96];

	MAP_EACH_ENTRY(struct math_group *g, const struct math_key *k, &a->groups) {
		double possible = possible_of(a, g);

		if (!g->has_flop)
			continue;
		table__add(t, V_TEXT(math_calls__function(a, k->function)),
			   V_TEXT(math_key__sizes(k, sizes, sizeof(sizes))),
			   V_TEXT(math_key__types(k, types, sizeof(types))), V_TEXT(math_peak__unit_name(k->unit)),
			   V_U64(g->time.count + g->untimed), V_U64(g->errors), V_U64(g->time.total),
			   g->time.count ? V_DBL(g->time.mean) : V_NONE, V_U64(g->flop),
			   g->kernels ? V_U64(g->kernels) : V_NONE, g->kernels ? V_U64(g->device_ns) : V_NONE,
			   g->kernels ? V_DBL((double)g->device_flop * 1e9 / (double)g->device_ns) : V_NONE,
			   possible > 0 ? V_DBL(100 * (double)g->device_flop / possible) : V_NONE, V_U64(g->untimed));
	}
	table__sort(t, "flop");
	if (!a->kernels)
		return;
	table__sort(t, "gpu_ns");
	table__show(t, "gpu_ns", SHOW_NS);
	table__show(t, "flop_per_s", SHOW_GIGA);
	table__show(t, "peak_percent", SHOW_PERCENT);
}

/* Products of FP32 that could use the tensor cores, if the program accepted the precision of TF32 */
static void add_findings(const struct math_calls *a, struct report_output *out)
{
	u64 fp32_ns = 0, all_ns = 0, calls = 0, products = 0;

	MAP_EACH_ENTRY(const struct math_group *g, const struct math_key *k, &a->groups) {
		if (!g->has_flop)
			continue;
		products += g->time.count + g->untimed;
		all_ns += g->device_ns;
		if (k->unit == MATH_FP32 && g->has_tf32) {
			fp32_ns += g->device_ns;
			calls += g->time.count + g->untimed;
		}
	}
	if (products)
		report_output__finding(out, "%s call%s requested %.3f GFLOP of arithmetic on matrices.",
				       TEXT_COUNT(products), text__s(products), (double)a->flop / 1e9);
	if (fp32_ns >= all_ns / 4 && fp32_ns)
		report_output__finding(
			out,
			"%.1f%% of the time of their kernels, %s, was arithmetic in FP32 without TF32, in %s call%s: the GPU's tensor cores were not used.",
			table__percent(fp32_ns, all_ns), TEXT_NS(fp32_ns), TEXT_COUNT(calls), text__s(calls));
}

static void add_notes(const struct math_calls *a, struct report_output *out)
{
	if (a->calls && !a->kernels)
		report_output__note(
			out, "No kernels with device times were recorded: `sonde record -t +gpu -- COMMAND` has them.");
	if (a->launches_dropped)
		report_output__note(out, "The kernels of %s launches are not attributed to calls: there are too many.",
				    TEXT_COUNT(a->launches_dropped));
	if (a->others.time.count || a->others.untimed)
		report_output__note(out,
				    "%s calls have so many different sizes that they are counted by function alone.",
				    TEXT_COUNT(a->others.time.count + a->others.untimed));
	if (a->pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *functions = REPORT_TABLE(out, "functions", "Calls by function", function_columns);
	struct table *products = REPORT_TABLE(out, "products", "Calls by function, sizes and types", product_columns);
	struct math_calls a;
	int err = math_calls__read(&a, args);

	functions->limit = products->limit = 30;
	products->details = "errors avg_ns total_ns";
	fill_functions(&a, functions);
	fill_products(&a, products);
	if (!a.calls)
		report__nothing(args, out, "No calls of mathematics libraries were recorded", "cublas");
	add_findings(&a, out);
	add_notes(&a, out);
	math_calls__free(&a);
	return err;
}

REPORT(math) = {
	.name = "math",
	.doc = "calls of cuBLAS, cuDNN and others: time, sizes, floating-point operations, share of the GPU's peak",
	.kinds = "cublas_call,cudnn_call,cudalib_call",
	.run = run,
	.summary = 3,
	.takes_peak = true,
};
