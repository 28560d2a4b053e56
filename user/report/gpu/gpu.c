// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report gpu: how busy GPUs were, by device and stream, and what the launching threads did in the gaps. */
#include "report/gpu/gpu.h"

#include "findings/about.h"

/* Number of gaps with a row of their own. */
#define GAPS_MAX 200

int gpu_report__read(struct gpu_report *r, const struct query *args, u32 max)
{
	int err;

	*r = (struct gpu_report){ 0 };
	err = gpu_busy__read(&r->busy, args, NULL, NULL);
	return err ? err : gpu_gaps__read(&r->gaps, &r->busy, max);
}

void gpu_report__free(struct gpu_report *r)
{
	gpu_gaps__free(&r->gaps);
	gpu_busy__free(&r->busy);
}

/* Did a device have work, or did a process launch any? */
static bool has_work(const struct gpu_report *r)
{
	for (u32 i = 0; i < r->busy.devices.n; i++)
		if (gpu_device__time(gpu_busy__sum(&r->busy, i)))
			return true;
	return r->busy.host_work.n;
}

static const struct column device_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "model", "Model", VALUE_TEXT, SHOW_PLAIN },
	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
	{ "busy_percent", "Busy (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NS },
	{ "idle_ns", "Idle", VALUE_U64, SHOW_NS },
	{ "gaps", "Gaps", VALUE_U64, SHOW_COUNT },
	{ "longest_gap_ns", "Longest", VALUE_U64, SHOW_NS },
	{ "kernel_ns", "Kernels", VALUE_U64, SHOW_NS },
	{ "copy_ns", "Copies, sets", VALUE_U64, SHOW_NS },
	{ "both_ns", "Overlap", VALUE_U64, SHOW_NS },
	/* not a percentage: SHOW_PERCENT prints a number with one decimal */
	{ "depth", "Kernels at once (avg)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "deepest", "Most at once", VALUE_U64, SHOW_PLAIN },
	{ "kernels", "Kernels", VALUE_U64, SHOW_NEVER },
	{ "copies", "Copies", VALUE_U64, SHOW_NEVER },
	{ "sets", "Sets", VALUE_U64, SHOW_NEVER },
	{ "graphs", "Graphs", VALUE_U64, SHOW_NEVER },
	{ "copied_bytes", "Copied", VALUE_U64, SHOW_NEVER },
	{ "from_ns", "From", VALUE_S64, SHOW_NEVER },
	{ "to_ns", "To", VALUE_S64, SHOW_NEVER },
};

static void fill_devices(const struct gpu_report *r, struct table *t)
{
	const struct gpu_busy *b = &r->busy;

	for (u32 i = 0; i < b->devices.n; i++) {
		const struct gpu_device_key *k = gpu_busy__key(b, i);
		const struct gpu_device_sum *d = gpu_busy__sum(b, i);
		const struct gpu_device_facts *facts = gpu_model__device(b->model, k->pid, k->device);

		if (!gpu_device__time(d))
			continue; /* all of its work was before or after the selected time */
		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(b->args->names, k->pid, 0)), V_U64(k->device),
			   V_TEXT(facts && *facts->model ? facts->model : NULL), V_U64(gpu_device__time(d)),
			   V_DBL(table__percent(d->busy_ns, gpu_device__time(d))), V_U64(d->busy_ns),
			   V_U64(gpu_device__idle(d)), V_U64(d->gaps), V_U64(d->longest), V_U64(d->kernel_ns),
			   V_U64(d->copy_ns), V_U64(d->both_ns),
			   d->kernel_ns ? V_DBL((double)d->depth_ns / (double)d->kernel_ns) : V_NONE, V_U64(d->deepest),
			   V_U64(d->kernels), V_U64(d->copies), V_U64(d->sets), V_U64(d->graphs), V_U64(d->bytes),
			   report__moment(b->args, d->first), report__moment(b->args, d->last));
	}
	table__sort(t, "wall_ns");
}

static const struct column cause_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "cause", "Cause", VALUE_TEXT, SHOW_PLAIN },
	{ "idle_ns", "Idle", VALUE_U64, SHOW_NS },
	{ "idle_percent", "of idle (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "gaps", "Gaps", VALUE_U64, SHOW_COUNT },
	{ "of", "Of", VALUE_TEXT, SHOW_NEVER },
	{ "did", "The launching thread", VALUE_TEXT, SHOW_PLAIN },
};

static void fill_causes(const struct gpu_report *r, struct table *t)
{
	const struct map *sums = &r->gaps.sums;
	char did[TEXTS_LEN + 96];

	MAP_EACH_ENTRY(const struct gap_sum *s, const struct gap_sum_key *key, sums) {
		const struct gpu_device_key *k = gpu_busy__key(&r->busy, key->device);
		const char *object = texts__text(&r->gaps.texts, key->object);
		u64 idle = gpu_device__idle(gpu_busy__sum(&r->busy, key->device));

		table__add(t, V_U64(k->pid), V_U64(k->device), V_TEXT(gap_cause__key(key->cause)), V_U64(s->ns),
			   V_DBL(table__percent(s->ns, idle)), V_U64(s->gaps), V_TEXT(object),
			   V_TEXT(gap_cause__text(key->cause, object, did, sizeof(did))));
	}
	table__sort(t, "idle_ns");
}

static const struct column gap_columns[] = {
	{ "gap", "Gap", VALUE_U64, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "from_ns", "From (s)", VALUE_S64, SHOW_SECONDS },
	{ "gap_ns", "Idle", VALUE_U64, SHOW_NS },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "thread", "Launched by", VALUE_TEXT, SHOW_PLAIN },
	{ "call", "Call", VALUE_TEXT, SHOW_NEVER },
	{ "work", "Ended by", VALUE_TEXT, SHOW_PLAIN },
	{ "percent", "of the gap (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "cause", "Cause", VALUE_TEXT, SHOW_NEVER },
	{ "of", "Of", VALUE_TEXT, SHOW_NEVER },
	{ "did", "The launching thread", VALUE_TEXT, SHOW_PLAIN },
};

static void fill_gaps(const struct gpu_report *r, struct table *t)
{
	const struct gpu_busy *b = &r->busy;
	char did[TEXTS_LEN + 96];

	for (u32 i = 0; i < r->gaps.n_details; i++) {
		const struct gap_detail *detail = &r->gaps.details[i];
		const struct gpu_gap *g = detail->gap;
		const struct gpu_device_key *k = gpu_busy__key(b, g->device);
		const struct gap_part *first = detail->n ? &detail->parts[0] : NULL;
		const char *object = first ? texts__text(&r->gaps.texts, first->object) : NULL;

		table__add(t, V_U64(i + 1), V_U64(k->pid), V_U64(k->device), report__moment(b->args, g->from),
			   V_U64(g->to - g->from), g->tid ? V_U64(g->tid) : V_NONE,
			   V_TEXT(g->tid ? NAMES_TITLE(b->args->names, k->pid, g->tid) : NULL), V_TEXT(g->call),
			   V_TEXT(g->is_kernel && g->name ? gpu_model__short_name(b->model, g->name) : g->name),
			   first ? V_DBL(table__percent(first->ns, g->to - g->from)) : V_NONE,
			   V_TEXT(first ? gap_cause__key(first->cause) : NULL), V_TEXT(object),
			   V_TEXT(first ? gap_cause__text(first->cause, object, did, sizeof(did)) : NULL));
	}
}

static const struct column part_columns[] = {
	{ "gap", "Gap", VALUE_U64, SHOW_PLAIN },
	{ "cause", "Cause", VALUE_TEXT, SHOW_PLAIN },
	{ "of", "Of", VALUE_TEXT, SHOW_PLAIN },
	{ "ns", "Time", VALUE_U64, SHOW_NS },
};

static void fill_parts(const struct gpu_report *r, struct table *t)
{
	for (u32 i = 0; i < r->gaps.n_details; i++)
		for (u32 k = 0; k < r->gaps.details[i].n; k++) {
			const struct gap_part *p = &r->gaps.details[i].parts[k];

			table__add(t, V_U64(i + 1), V_TEXT(gap_cause__key(p->cause)),
				   V_TEXT(texts__text(&r->gaps.texts, p->object)), V_U64(p->ns));
		}
}

static const struct column stream_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "context", "Context", VALUE_U64, SHOW_PLAIN },
	{ "stream", "Stream", VALUE_U64, SHOW_PLAIN },
	{ "busy_percent", "Busy (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "busy_ns", "Busy", VALUE_U64, SHOW_NS },
	{ "works", "Kernels, copies, sets", VALUE_U64, SHOW_COUNT },
};

static void fill_streams(const struct gpu_report *r, struct table *t)
{
	const struct gpu_busy *b = &r->busy;

	MAP_EACH_ENTRY(const struct gpu_stream_sum *s, const struct gpu_stream_key *k, &b->streams) {
		const struct gpu_device_sum *d = map__find(&b->devices, &k->device);

		if (!s->works)
			continue;
		table__add(t, V_U64(k->device.pid), V_U64(k->device.device), V_U64(k->context), V_U64(k->stream),
			   V_DBL(table__percent(s->busy_ns, gpu_device__time(d))), V_U64(s->busy_ns), V_U64(s->works));
	}
	table__sort(t, "busy_ns");
}

static const struct column host_work_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "kernels", "Kernels", VALUE_U64, SHOW_COUNT },
	{ "graphs", "Graphs", VALUE_U64, SHOW_COUNT },
	{ "copies", "Copies", VALUE_U64, SHOW_COUNT },
	{ "sets", "Sets", VALUE_U64, SHOW_COUNT },
	{ "call_ns", "Time in calls", VALUE_U64, SHOW_NS },
};

static void fill_host_work(const struct gpu_report *r, struct table *t)
{
	MAP_EACH_ENTRY(const struct gpu_host_work *a, const u32 *pid, &r->busy.host_work)
		table__add(t, V_U64(*pid), V_TEXT(NAMES_TITLE(r->busy.args->names, *pid, 0)), V_U64(a->kernels),
			   V_U64(a->graphs), V_U64(a->copies), V_U64(a->sets), V_U64(a->ns));
	table__sort(t, "call_ns");
}

static void fill(const struct gpu_report *r, struct report_output *out)
{
	struct table *devices = REPORT_TABLE(out, "devices", "GPUs by process", device_columns);
	struct table *causes = REPORT_TABLE(out, "causes", "Why GPUs were idle", cause_columns);
	struct table *gaps = REPORT_TABLE(out, "gaps", "The longest gaps, and the main cause of each", gap_columns);
	struct table *parts = REPORT_MACHINE_TABLE(out, "parts", "The longest gaps in parts", part_columns);
	struct table *streams = REPORT_TABLE(out, "streams", "Streams", stream_columns);
	struct table *calls = REPORT_TABLE(
		out, "host_work", "Processes without device times: what they launched, and the time in these calls",
		host_work_columns);

	devices->details = "model copy_ns depth deepest both_ns busy_ns";
	causes->limit = 20;
	gaps->limit = 15;
	streams->limit = 15;
	fill_devices(r, devices);
	fill_causes(r, causes);
	fill_gaps(r, gaps);
	fill_parts(r, parts);
	fill_streams(r, streams);
	fill_host_work(r, calls);
}

static int run(const struct query *args, struct report_output *out)
{
	struct gpu_report r;
	struct finding_input in = { .q = args, .gaps = &r.gaps };
	int err = gpu_report__read(&r, args, GAPS_MAX);

	if (!err) {
		if (!has_work(&r))
			report__nothing(args, out, "No work of a GPU was recorded", "gpu");
		err = findings__add_about(&in, findings__find_gpu, out);
		err = err ?: gpu_report__add_host_findings(&r, out);
		fill(&r, out);
		err = err ?: gpu_report__add_metrics(args, out);
		gpu_report__add_notes(&r, out);
	}
	gpu_report__free(&r);
	return err;
}

REPORT(gpu) = {
	.name = "gpu",
	.doc = "how busy GPUs were, and what the launching threads did while they were idle",
	.kinds = "gpu_kernel,gpu_memcpy,gpu_memset,gpu_graph,nvml_value",
	.run = run,
};
