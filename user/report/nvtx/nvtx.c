// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report nvtx: ranges by name (nsys's nvtx_sum), what threads did in each range, marks and counters. The time of a part
 * counts for the innermost range of its thread alone.
 */
#include <errno.h>
#include <string.h>

#include "core/shim_nvtx.h"
#include "model/activity.h"
#include "model/nvtx.h"
#include "model/stats.h"
#include "output/text.h"
#include "report/report.h"

struct range_key {
	u32 label;
	u32 is_started;
};

struct range_group {
	struct stats time;
	u64 open; /* had not ended: not in `time` */
};

struct mark_key {
	struct nvtx_label label;
	u32 pid;
	u32 kind; /* enum counter_kind */
};

struct mark_group {
	u64 n, nothing; /* samples; those without a value */
	double min, max, sum, last;
	u64 last_time;
};

/* What a thread may do in a range, as columns. */
enum doing { DO_RUN, DO_CPU, DO_GIL, DO_LOCK, DO_GPU, DO_LIBRARY, DO_FILE, DO_OTHER, DO_UNKNOWN, DOINGS };

struct part_group {
	u64 ns[DOINGS];
	u64 total;
};

struct nvtx_report {
	const struct query *args;
	struct nvtx nvtx;
	struct stats_pool pool;
	struct map ranges; /* struct range_key -> struct range_group */
	struct map parts; /* u32 label -> struct part_group */
	struct map marks, counters; /* struct mark_key -> struct mark_group */
	const struct activity_interval *interval; /* that is being divided */
	u64 total, open;
};

static const struct column range_columns[] = {
	{ "time_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total Time (ns)", VALUE_U64, SHOW_COUNT },
	{ "instances", "Instances", VALUE_U64, SHOW_COUNT },
	{ "avg_ns", "Avg (ns)", VALUE_DOUBLE, SHOW_COUNT },
	{ "median_ns", "Med (ns)", VALUE_DOUBLE, SHOW_COUNT },
	{ "min_ns", "Min (ns)", VALUE_U64, SHOW_COUNT },
	{ "max_ns", "Max (ns)", VALUE_U64, SHOW_COUNT },
	{ "stddev_ns", "StdDev (ns)", VALUE_DOUBLE, SHOW_COUNT },
	{ "style", "Style", VALUE_TEXT, SHOW_PLAIN },
	{ "range", "Range", VALUE_TEXT, SHOW_PLAIN },
	{ "open", "Not ended", VALUE_U64, SHOW_NEVER },
};

static const struct column part_columns[] = {
	{ "range", "Innermost range", VALUE_TEXT, SHOW_PLAIN },
	{ "thread_ns", "Time", VALUE_U64, SHOW_NS },
	{ "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "For a CPU", VALUE_U64, SHOW_NS },
	{ "gil_wait_ns", "GIL", VALUE_U64, SHOW_NS },
	{ "lock_wait_ns", "Lock", VALUE_U64, SHOW_NS },
	{ "cuda_ns", "CUDA", VALUE_U64, SHOW_NS },
	{ "library_ns", "Libraries", VALUE_U64, SHOW_NS },
	{ "file_ns", "Disk, files", VALUE_U64, SHOW_NS },
	{ "other_wait_ns", "Other", VALUE_U64, SHOW_NS },
	{ "unknown_ns", "Unknown", VALUE_U64, SHOW_NS },
};

static const struct column mark_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "instances", "Instances", VALUE_U64, SHOW_COUNT },
	{ "mark", "Mark", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column counter_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
	{ "without_value", "No value", VALUE_U64, SHOW_COUNT },
	{ "avg_value", "Avg", VALUE_DOUBLE, SHOW_PLAIN },
	{ "min_value", "Min", VALUE_DOUBLE, SHOW_PLAIN },
	{ "max_value", "Max", VALUE_DOUBLE, SHOW_PLAIN },
	{ "last_value", "Last", VALUE_DOUBLE, SHOW_PLAIN },
	{ "counter", "Counter", VALUE_TEXT, SHOW_PLAIN },
};

static int sum_ranges(struct nvtx_report *r)
{
	int err = 0;

	MAP_EACH(const struct nvtx_thread *t, &r->nvtx.threads)
		for (u32 i = 0; !err && i < t->n; i++) {
			const struct nvtx_range *range = &t->ranges[i];
			struct range_group *g =
				map__get(&r->ranges, &(struct range_key){ range->label, range->is_started });

			if (!g)
				return -ENOMEM;
			g->open += range->is_open;
			r->open += range->is_open;
			if (range->is_open)
				continue;
			r->total += range->end - range->start;
			err = stats__add(&g->time, &r->pool, range->end - range->start);
		}
	return err;
}

static enum doing doing_of(const struct activity_interval *i)
{
	switch (i->cause) {
	case ACTIVITY_GIL:
		return DO_GIL;
	case ACTIVITY_LOCK:
	case ACTIVITY_CONDITION:
	case ACTIVITY_FUTEX:
		return DO_LOCK;
	case ACTIVITY_CUDA:
	case ACTIVITY_CUDA_SYNC:
		return DO_GPU;
	case ACTIVITY_NCCL:
	case ACTIVITY_LIBRARY:
		return DO_LIBRARY;
	case ACTIVITY_DISK:
	case ACTIVITY_FAULT:
	case ACTIVITY_SYNC:
	case ACTIVITY_TRANSFER:
		return DO_FILE;
	default:
		return i->state == ACTIVITY_RUNNING  ? DO_RUN :
		       i->state == ACTIVITY_RUNNABLE ? DO_CPU :
		       i->state == ACTIVITY_UNKNOWN  ? DO_UNKNOWN :
						       DO_OTHER;
	}
}

static int add_part(const struct nvtx_range *range, u64 from, u64 to, void *arg)
{
	struct nvtx_report *r = arg;
	struct part_group *g = range ? map__get(&r->parts, &range->label) : NULL;

	if (!range)
		return 0;
	if (!g)
		return -ENOMEM;
	g->ns[doing_of(r->interval)] += to - from;
	g->total += to - from;
	return 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct nvtx_report *r = arg;
	const struct nvtx_thread *t = nvtx__thread(&r->nvtx, i->thread);

	r->interval = i;
	return t ? nvtx_thread__split(t, i->from, i->to, add_part, r) : 0;
}

static int sum_parts(struct nvtx_report *r)
{
	struct activity *a;
	int err = activity__new(&a, r->args, ACTIVITY_IN_CALLS);

	MAP_EACH_ENTRY(const struct nvtx_thread *t, const struct thread_key *k, &r->nvtx.threads)
		if (!err && t->n)
			err = activity__add_thread(a, k->pid, k->tid);
	if (!err)
		err = activity__read(a, on_interval, r);
	activity__free(a);
	return err;
}

static void add_sample(struct mark_group *g, u32 kind, u64 bits, u64 time)
{
	bool is_double;
	double value;
	s64 number;
	bool first = g->n == g->nothing;

	g->n++;
	if (!nvtx__number(kind, bits, &is_double, &value, &number)) {
		g->nothing++;
		return;
	}
	g->sum += value;
	g->min = first || value < g->min ? value : g->min;
	g->max = first || value > g->max ? value : g->max;
	if (time >= g->last_time) {
		g->last_time = time;
		g->last = value;
	}
}

static int on_marks(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), name, domain, value, value_kind);
	bool is_counter = value;
	struct nvtx_report *r = arg;

	ROWS_EACH(v, rows) {
		struct mark_key key = { { (u64)view__s64(&v, domain), (u64)view__s64(&v, name) },
					(u32)view__s64(&v, f.pid),
					0 };
		struct mark_group *g = map__get(is_counter ? &r->counters : &r->marks, &key);

		if (!g)
			return -ENOMEM;
		if (is_counter)
			add_sample(g, (u32)view__s64(&v, value_kind), (u64)view__s64(&v, value),
				   (u64)view__s64(&v, f.time));
		else
			g->n++;
	}
	return 0;
}

static void fill_ranges(struct nvtx_report *r, struct table *t)
{
	MAP_EACH_ENTRY(struct range_group *g, const struct range_key *k, &r->ranges) {
		bool known = g->time.count;

		table__add(t, V_DBL(table__percent(g->time.total, r->total)), V_U64(g->time.total),
			   V_U64(g->time.count + g->open), known ? V_DBL(g->time.mean) : V_NONE,
			   known ? V_DBL(stats__median(&g->time)) : V_NONE, known ? V_U64(g->time.min) : V_NONE,
			   known ? V_U64(g->time.max) : V_NONE, known ? V_DBL(stats__stddev(&g->time)) : V_NONE,
			   V_TEXT(k->is_started ? "StartEnd" : "PushPop"), V_TEXT(NVTX_LABEL_OF(&r->nvtx, k->label)),
			   V_U64(g->open));
	}
	table__sort(t, "total_ns");
}

static void fill_parts(struct nvtx_report *r, struct report_output *out)
{
	struct table *t = r->parts.n ? REPORT_TABLE(out, "parts",
						    "What threads did in each range (without the ranges inside it)",
						    part_columns) :
				       NULL;

	if (!t)
		return;
	t->limit = 30;
	MAP_EACH_ENTRY(const struct part_group *g, const u32 *label, &r->parts)
		table__add(t, V_TEXT(NVTX_LABEL_OF(&r->nvtx, *label)), V_U64(g->total), V_U64(g->ns[DO_RUN]),
			   V_U64(g->ns[DO_CPU]), V_U64(g->ns[DO_GIL]), V_U64(g->ns[DO_LOCK]), V_U64(g->ns[DO_GPU]),
			   V_U64(g->ns[DO_LIBRARY]), V_U64(g->ns[DO_FILE]), V_U64(g->ns[DO_OTHER]),
			   V_U64(g->ns[DO_UNKNOWN]));
	table__sort(t, "thread_ns");
}

static const char *label_of(struct nvtx_report *r, const struct mark_key *k, char *buf, size_t size)
{
	return names__nvtx_label(r->args->names, k->pid, k->label.domain, k->label.name, buf, size);
}

static void fill_marks(struct nvtx_report *r, struct report_output *out)
{
	struct table *t = r->marks.n ? REPORT_TABLE(out, "marks", "Marks", mark_columns) : NULL;
	char label[NVTX_LABEL];

	MAP_EACH_ENTRY(const struct mark_group *g, const struct mark_key *k, &r->marks)
		table__add(t, V_U64(k->pid), V_U64(g->n), V_TEXT(label_of(r, k, label, sizeof(label))));
	if (t)
		table__sort(t, "instances");
	if (!r->counters.n)
		return;
	t = REPORT_TABLE(out, "counters", "Counters", counter_columns);
	MAP_EACH_ENTRY(const struct mark_group *g, const struct mark_key *k, &r->counters) {
		u64 known = g->n - g->nothing;

		table__add(t, V_U64(k->pid), V_U64(g->n), V_U64(g->nothing),
			   known ? V_DBL(g->sum / (double)known) : V_NONE, known ? V_DBL(g->min) : V_NONE,
			   known ? V_DBL(g->max) : V_NONE, known ? V_DBL(g->last) : V_NONE,
			   V_TEXT(label_of(r, k, label, sizeof(label))));
	}
	table__sort(t, "samples");
}

static const char *const doing_texts[DOINGS] = {
	[DO_RUN] = "on a CPU",
	[DO_CPU] = "waiting for a CPU",
	[DO_GIL] = "waiting for the GIL",
	[DO_LOCK] = "waiting for locks",
	[DO_GPU] = "in CUDA",
	[DO_LIBRARY] = "in NCCL or other libraries",
	[DO_FILE] = "reading or writing files",
	[DO_OTHER] = "asleep or waiting for others",
};

static void add_finding(struct nvtx_report *r, struct report_output *out)
{
	const struct part_group *top = NULL;
	u32 label = 0, most = DO_OTHER;

	MAP_EACH_ENTRY(const struct part_group *g, const u32 *k, &r->parts)
		if (!top || g->total > top->total) {
			top = g;
			label = *k;
		}
	for (u32 i = 0; top && i < DO_UNKNOWN; i++)
		if (top->ns[i] > top->ns[most])
			most = i;
	if (top && top->ns[most])
		report_output__finding(out, "In range %.60s, of %s, threads were %s for %.0f%% of the time.",
				       NVTX_LABEL_OF(&r->nvtx, label), TEXT_NS(top->total), doing_texts[most],
				       table__percent(top->ns[most], top->total));
	if (r->open)
		report_output__note(out, "%s range%s had not ended when the recording did: only `Instances` has them.",
				    TEXT_COUNT(r->open), text__s(r->open));
	if (r->nvtx.left_out)
		report_output__note(out, "%s ranges beyond the first %s are left out.", TEXT_COUNT(r->nvtx.left_out),
				    TEXT_COUNT(NVTX_RANGES_MAX));
}

static int on_dropped(const struct rows *rows, void *arg)
{
	u64 *dropped = arg;

	ROWS_EACH(v, rows) {
		u32 reason = (u32)view__get(&v, "reason");

		/* of a process that was killed, the number of records is not known */
		if (reason < 8)
			dropped[reason] += reason == NVTX_PROCESS_ENDED ? 1 : (u64)view__get(&v, "records");
	}
	return 0;
}

static int add_drops(struct nvtx_report *r, struct report_output *out)
{
	struct query whole = *r->args;
	u64 dropped[8] = { 0 };
	int err;

	/* that a process was killed may be noticed when tracing has stopped */
	if (whole.facts && whole.to >= whole.facts->stop)
		whole.to = 0;
	err = query__read_kind(&whole, "nvtx_dropped", on_dropped, dropped);
	if (dropped[NVTX_BEGAN_BEFORE])
		report_output__note(
			out,
			"%s range%s ended whose begin is not known, because it was before the recording, or a pop had no push.",
			TEXT_COUNT(dropped[NVTX_BEGAN_BEFORE]), text__s(dropped[NVTX_BEGAN_BEFORE]));
	if (dropped[NVTX_LANE_FULL] + dropped[NVTX_TOO_MANY])
		report_output__note(out, "%s ranges or marks had no room in the process and are lost.",
				    TEXT_COUNT(dropped[NVTX_LANE_FULL] + dropped[NVTX_TOO_MANY]));
	if (dropped[NVTX_PROCESS_ENDED])
		report_output__note(
			out, "%s process%s ended without handing over the last 0.1 s: what it did then is missing.",
			TEXT_COUNT(dropped[NVTX_PROCESS_ENDED]), text__es(dropped[NVTX_PROCESS_ENDED]));
	return err;
}

static int read_all(struct nvtx_report *r)
{
	return nvtx__read(&r->nvtx, r->args)				      ?:
		       query__read_kind(r->args, "nvtx_mark", on_marks, r)    ?:
		       query__read_kind(r->args, "nvtx_counter", on_marks, r) ?:
		       sum_ranges(r)					      ?:
										(r->nvtx.n ? sum_parts(r) : 0);
}

static void free_all(struct nvtx_report *r)
{
	MAP_EACH(struct range_group *g, &r->ranges)
		stats__free(&g->time, &r->pool);
	MAPS_FREE(&r->ranges, &r->parts, &r->marks, &r->counters);
	nvtx__free(&r->nvtx);
}

static int on_shim(const struct rows *rows, void *arg)
{
	*(bool *)arg |= rows__count(rows) > 0;
	return 0;
}

static void add_nothing(const struct query *args, struct report_output *out)
{
	bool has_shim = false;

	report__nothing(args, out, "No range or mark of NVTX was recorded", "nvtx");
	if (query__has_family(args, "nvtx") && !query__read_kind(args, "nvtx_shim", on_shim, &has_shim) && !has_shim)
		report_output__note(
			out,
			"No process had sonde's library: `sonde record -t +nvtx -- CMD` starts one with it, `--inject -p PID` loads it. It looks for a recording once a second.");
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "ranges", "Ranges of NVTX", range_columns);
	struct nvtx_report r = { .args = args };
	int err;

	map__init(&r.ranges, sizeof(struct range_key), sizeof(struct range_group));
	map__init(&r.parts, sizeof(u32), sizeof(struct part_group));
	map__init(&r.marks, sizeof(struct mark_key), sizeof(struct mark_group));
	map__init(&r.counters, sizeof(struct mark_key), sizeof(struct mark_group));
	err = read_all(&r);
	if (!err) {
		t->limit = 30;
		fill_ranges(&r, t);
		fill_parts(&r, out);
		fill_marks(&r, out);
		add_finding(&r, out);
		err = add_drops(&r, out);
		if (!r.nvtx.n && !r.marks.n && !r.counters.n)
			add_nothing(args, out);
	}
	free_all(&r);
	return err;
}

REPORT(nvtx) = {
	.name = "nvtx",
	.doc = "ranges, marks and counters of NVTX, and what threads did in each range",
	.kinds = "nvtx_range,nvtx_mark,nvtx_counter",
	.run = run,
	.summary = 45,
};
