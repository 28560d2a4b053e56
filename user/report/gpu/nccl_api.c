// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report nccl-api: NCCL calls by function and communicator, failures, and calls that had not returned. */
#include "findings/about.h"
#include "model/nccl_bandwidth.h"
#include "output/text.h"
#include "report/report.h"

static const struct column function_columns[] = {
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN },	 { "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "errors", "Errors", VALUE_U64, SHOW_COUNT },	 { "open", "Open", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },	 { "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },	 { "min_ns", "Min", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },	 { "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column rank_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "comm", "Communicator", VALUE_U64, SHOW_HEX }, { "rank", "Rank", VALUE_S64, SHOW_PLAIN },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },	 { "device", "Device", VALUE_S64, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },	 { "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "open", "Open", VALUE_U64, SHOW_COUNT },	 { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },	 { "hash", "Hash", VALUE_U64, SHOW_HEX },
};

static const struct column open_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "thread", "Thread", VALUE_TEXT, SHOW_PLAIN },	 { "name", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "comm", "Communicator", VALUE_U64, SHOW_HEX }, { "rank", "Rank", VALUE_S64, SHOW_PLAIN },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },	 { "open_ns", "Open for", VALUE_U64, SHOW_NS },
};

static const struct column failure_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN }, { "ret", "Returned", VALUE_S64, SHOW_PLAIN },
	{ "error", "Error", VALUE_TEXT, SHOW_PLAIN },	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
};

/* Bandwidths by the definitions of nccl-tests (model/nccl_bandwidth.h) */
static const struct column speed_columns[] = {
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },
	{ "algorithm", "Algorithm", VALUE_TEXT, SHOW_PLAIN },
	{ "protocol", "Protocol", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "kernels", "Kernels", VALUE_U64, SHOW_COUNT },
	{ "gpu_ns", "On GPU", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "min_ns", "Min", VALUE_U64, SHOW_NS },
	{ "algorithm_bytes_per_s", "Alg. GB/s", VALUE_DOUBLE, SHOW_GIGA },
	{ "bus_bytes_per_s", "Bus GB/s", VALUE_DOUBLE, SHOW_GIGA },
	{ "fastest_bus_bytes_per_s", "Fastest bus GB/s", VALUE_DOUBLE, SHOW_GIGA },
};

static void fill_functions(struct nccl_calls *a, struct table *t)
{
	struct nccl_function *f;
	u32 i;

	for (i = 0; i < a->functions.n; i++) {
		f = map__value(&a->functions, i);
		table__add(t, V_TEXT(nccl_calls__function_name(a, *(const u32 *)map__key(&a->functions, i))),
			   V_U64(f->time.count + f->untimed), V_U64(f->errors), V_U64(f->open), V_U64(f->time.total),
			   V_DBL(f->time.mean), V_DBL(stats__median(&f->time)), V_U64(f->time.min), V_U64(f->time.max),
			   f->bytes ? V_U64(f->bytes) : V_NONE, V_U64(f->untimed));
	}
	table__sort(t, "total_ns");
}

/* Returns how many communicators were used but are not known. */
static u32 fill_ranks(struct nccl_calls *a, struct table *t)
{
	const struct nccl_handle *k;
	const struct nccl_handles *h;
	const struct nccl_rank *r;
	u32 i, j, unknown = 0;

	for (i = 0; i < a->comms.n; i++) {
		k = map__key(&a->comms, i);
		h = map__value(&a->comms, i);
		for (j = 0; j < h->n; j++) {
			r = &h->list[j];
			if (!r->calls)
				continue;
			unknown += !r->size;
			table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(a->names, k->pid, 0)), V_U64(k->comm),
				   r->size ? V_S64(r->rank) : V_NONE, r->size ? V_S64(r->size) : V_NONE,
				   r->device >= 0 ? V_S64(r->device) : V_NONE, V_U64(r->calls), V_U64(r->errors),
				   V_U64(r->open), V_U64(r->ns), V_U64(r->bytes), r->hash ? V_U64(r->hash) : V_NONE);
		}
	}
	table__sort(t, "bytes");
	return unknown;
}

static void fill_open(struct nccl_calls *a, struct table *t)
{
	const struct nccl_open *o;

	for (o = a->open; o < a->open + a->n_open; o++)
		table__add(t, V_U64(o->pid), V_U64(o->tid), V_TEXT(NAMES_TITLE(a->names, o->pid, o->tid)),
			   V_TEXT(nccl_calls__function_name(a, o->function)), o->comm ? V_U64(o->comm) : V_NONE,
			   o->size ? V_S64(o->rank) : V_NONE, o->size ? V_S64(o->size) : V_NONE, V_U64(o->ns));
	table__sort(t, "open_ns");
}

static void fill_failures(struct nccl_calls *a, struct table *t)
{
	const struct nccl_failure_key *k;
	u32 i;

	for (i = 0; i < a->failures.n; i++) {
		k = map__key(&a->failures, i);
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(nccl_calls__function_name(a, k->function)),
			   V_S64(k->ret), V_TEXT(nccl_calls__result_name(k->ret)),
			   V_U64(*(u64 *)map__value(&a->failures, i)));
	}
	table__sort(t, "calls");
}

static void add_speed(struct nccl_calls *a, const struct nccl_speed_key *k, const struct nccl_speed *s, struct table *t)
{
	bool is_group = k->function == NCCL_OPERATIONS_DIFFER;
	double per_second = s->ns ? s->size * (double)s->kernels / ((double)s->ns / 1e9) : 0;
	double fastest = s->shortest ? s->factor * s->size / ((double)s->shortest / 1e9) : 0;

	table__add(t, V_TEXT(is_group ? "several in a group" : nccl_calls__function_name(a, k->function)),
		   V_U64(k->bytes), k->ranks ? V_S64(k->ranks) : V_NONE, V_TEXT_IF(k->algorithm),
		   V_TEXT_IF(k->protocol), V_U64(k->fused * s->kernels), V_U64(s->kernels), V_U64(s->ns),
		   V_DBL((double)s->ns / (double)s->kernels), V_U64(s->shortest),
		   per_second > 0 ? V_DBL(per_second) : V_NONE, per_second > 0 ? V_DBL(per_second * s->factor) : V_NONE,
		   fastest > 0 ? V_DBL(fastest) : V_NONE);
}

/* Adds the table of what ran on devices, if that was recorded. */
static int add_speeds(const struct query *args, struct nccl_calls *a, struct report_output *out)
{
	struct nccl_kernels kernels;
	struct map speeds;
	struct table *t;
	u64 fused = 0;
	int err = nccl_kernels__read(&kernels, a, args);

	map__init(&speeds, sizeof(struct nccl_speed_key), sizeof(struct nccl_speed));
	if (!err)
		err = nccl_bandwidth__sum(&speeds, a, &kernels);
	t = REPORT_TABLE(out, "speeds", "Collectives and point to point on GPUs", speed_columns);
	t->limit = 30;
	MAP_EACH_ENTRY(const struct nccl_speed *s, const struct nccl_speed_key *k, &speeds) {
		add_speed(a, k, s, t);
		fused += k->fused > 1 ? s->kernels : 0;
	}
	table__sort(t, "gpu_ns");
	if (fused)
		report_output__note(
			out,
			"%s kernel%s executed all calls of a group: a row has the sum of their bytes, and the kernel once.",
			TEXT_COUNT(fused), text__s(fused));
	if (kernels.unjoined)
		report_output__note(out, "Of %s of NCCL's kernels the call is not known: no row has them.",
				    TEXT_COUNT(kernels.unjoined));
	map__free(&speeds);
	nccl_kernels__free(&kernels);
	return err;
}

struct unread {
	const struct query *args;
	struct report_output *out;
	bool noted;
};

static int on_libraries(const struct rows *rows, void *arg)
{
	struct unread *u = arg;
	const char *why, *path;

	ROWS_EACH(v, rows) {
		why = names__string(u->args->names, (u32)view__get(&v, "why"));
		path = names__string(u->args->names, (u32)view__get(&v, "path"));
		if (!*why)
			continue;
		report_output__note(u->out, "Communicators of %s that are older than the trace are not described: %s.",
				    path, why);
		u->noted = true;
	}
	return 0;
}

static int note_unknown(const struct query *args, struct report_output *out, u32 n)
{
	struct unread u = { .args = args, .out = out };
	int err = n ? trace__read_kind(args->trace, "nccl_library", on_libraries, &u) : 0;

	if (n && !u.noted)
		report_output__note(out, "%u communicator%s could not be read, and %s not described.", n, text__s(n),
				    n == 1 ? "is" : "are");
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *functions, *ranks, *open, *failures;
	struct nccl_calls a;
	u32 unknown;
	struct finding_input in = { .q = args, .nccl = &a };
	int err = nccl_calls__read(&a, args);

	functions = REPORT_TABLE(out, "functions", "NCCL calls by function", function_columns);
	ranks = REPORT_TABLE(out, "communicators", "Collectives and point to point by communicator", rank_columns);
	open = REPORT_TABLE(out, "open", "Calls that had not returned at the end", open_columns);
	failures = REPORT_TABLE(out, "failures", "Calls that returned an error", failure_columns);
	ranks->limit = open->limit = failures->limit = 30;
	fill_functions(&a, functions);
	unknown = fill_ranks(&a, ranks);
	fill_open(&a, open);
	fill_failures(&a, failures);
	if (!err)
		err = add_speeds(args, &a, out);
	if (!a.calls)
		report__nothing(args, out, "No NCCL calls were recorded", "nccl");
	if (!err)
		err = findings__add_about(&in, findings__find_nccl, out);
	if (!err)
		err = note_unknown(args, out, unknown);
	if (a.pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
	nccl_calls__free(&a);
	return err;
}

REPORT(nccl_api) = {
	.name = "nccl-api",
	.doc = "calls of NCCL: count, time, bytes and errors by function and communicator, what hangs, and bandwidths",
	.kinds = "nccl_collective,nccl_p2p,nccl_comm,nccl_query,nccl_memory,nccl_reduction,nccl_call,nccl_other",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_NCCL,
};
