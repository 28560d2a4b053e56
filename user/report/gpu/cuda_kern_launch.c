// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report cuda-kern-launch: from the launch to the kernel's end (nsys's cuda_kern_exec_sum), and kernel time by the
 * Python line that launched it. Queue time is from the call's return to the kernel's start; total time from the call to
 * the last of both ends.
 */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "output/text.h"
#include "report/gpu/cuda_work.h"

struct launch_key {
	u64 api, name; /* hashes */
	u32 pid, tid, device, unused;
};

struct launch_group {
	const char *api, *name;
	struct stats total, call, queue, kernel;
};

struct stack_key {
	u32 pid, stack;
};

struct stack_group {
	u64 ns, kernels, launches;
	u64 queued; /* ns between the call's return and the kernel's start */
	u64 delayed; /* the part of it in which the stream ran earlier work, ns */
	u64 last; /* number of the latest launch: numbers rise */
	const char *name; /* of the single longest kernel */
	u64 longest;
};

struct launch_report {
	struct cuda_work work;
	struct map groups; /* struct launch_key -> struct launch_group */
	struct map lines, stacks; /* struct stack_key -> struct stack_group */
	u64 kernel_ns, stack_ns, queue_ns, queued;
};

#define TIMES(key, heading, show)                                                                                      \
	{ key "_avg_ns", heading "Avg", VALUE_DOUBLE, show }, { key "_median_ns", heading "Med", VALUE_DOUBLE, show }, \
		{ key "_min_ns", heading "Min", VALUE_U64, SHOW_NEVER },                                               \
		{ key "_max_ns", heading "Max", VALUE_U64, show },                                                     \
	{                                                                                                              \
		key "_stddev_ns", heading "StdDev", VALUE_DOUBLE, SHOW_NEVER                                           \
	}

static const struct column launch_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "device", "DevId", VALUE_U64, SHOW_PLAIN },
	{ "count", "Count", VALUE_U64, SHOW_COUNT },
	{ "queue_count", "QCount", VALUE_U64, SHOW_COUNT },
	TIMES("total", "T", SHOW_NS),
	TIMES("api", "A", SHOW_NS),
	TIMES("queue", "Q", SHOW_NS),
	TIMES("kernel", "K", SHOW_NS),
	{ "api", "API Name", VALUE_TEXT, SHOW_PLAIN },
	{ "name", "Kernel Name", VALUE_TEXT, SHOW_PLAIN },
	{ "kernel_ns", "Kernel time", VALUE_U64, SHOW_NEVER },
	{ "short_name", "Short name", VALUE_TEXT, SHOW_NEVER },
};

static const struct column line_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "kernel_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "kernel_ns", "Kernel time", VALUE_U64, SHOW_NS },
	{ "kernels", "Kernels", VALUE_U64, SHOW_COUNT },
	{ "launches", "Launches", VALUE_U64, SHOW_COUNT },
	{ "queued_ns", "Queued", VALUE_U64, SHOW_NS },
	{ "delayed_ns", "Stream busy", VALUE_U64, SHOW_NS },
	{ "line", "Launched by", VALUE_TEXT, SHOW_PLAIN },
	{ "longest_ns", "Longest", VALUE_U64, SHOW_NS },
	{ "longest_kernel", "Its kernel", VALUE_TEXT, SHOW_PLAIN },
};

static u64 hash(const char *text)
{
	return text ? XXH3_64bits(text, strlen(text)) : 0;
}

static int add_group(struct launch_report *r, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	struct launch_key key = { hash(l->function), hash(w->name), l->pid, l->tid, w->device, 0 };
	u64 end = w->end > l->end ? w->end : l->end;
	struct launch_group *g = map__get(&r->groups, &key);
	int err;

	if (!g)
		return -ENOMEM;
	g->api = l->function;
	g->name = w->name;
	/* the device's clock and the host's differ slightly */
	err = stats__add(&g->total, &r->work.pool, end > l->start ? end - l->start : 0);
	if (!err)
		err = stats__add(&g->call, &r->work.pool, l->end - l->start);
	if (!err)
		err = stats__add(&g->kernel, &r->work.pool, w->end - w->start);
	if (!err && w->start >= l->end)
		err = stats__add(&g->queue, &r->work.pool, w->queued);
	r->queued += w->start >= l->end;
	r->queue_ns += w->queued;
	return err;
}

static int add_stack(struct map *map, const struct gpu_work *w, u32 stack)
{
	struct stack_key key = { w->pid, stack };
	struct stack_group *g = map__get(map, &key);
	u64 ns = w->end - w->start, free;

	if (!g)
		return -ENOMEM;
	g->ns += ns;
	g->kernels++;
	g->launches += w->launch->number > g->last;
	g->last = w->launch->number > g->last ? w->launch->number : g->last;
	g->queued += w->queued;
	free = w->stream_free < w->start ? w->stream_free : w->start;
	g->delayed += free > w->launch->end ? free - w->launch->end : 0;
	if (ns >= g->longest) {
		g->longest = ns;
		g->name = w->name;
	}
	return 0;
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct launch_report *r = arg;
	u32 line;
	int err;

	if (w->kind != GPU_KERNEL || w->host_time || !cuda_work__is_whole(w))
		return 0;
	r->kernel_ns += w->end - w->start;
	err = w->launch ? add_group(r, w) : 0;
	line = cuda_work__line(&r->work, w->launch);
	if (err || !line)
		return err;
	r->stack_ns += w->end - w->start;
	err = add_stack(&r->lines, w, line);
	return err ? err : add_stack(&r->stacks, w, w->launch->stack);
}

#define TIME_VALUES(s)                                                                         \
	(s)->count ? V_DBL((s)->mean) : V_NONE, (s)->count ? V_DBL(stats__median(s)) : V_NONE, \
		(s)->count ? V_U64((s)->min) : V_NONE, (s)->count ? V_U64((s)->max) : V_NONE,  \
		(s)->count ? V_DBL(stats__stddev(s)) : V_NONE

static void fill_launches(struct launch_report *r, struct table *t)
{
	MAP_EACH_ENTRY(struct launch_group *g, const struct launch_key *k, &r->groups)
		table__add(t, V_U64(k->pid), k->tid ? V_U64(k->tid) : V_NONE, V_U64(k->device), V_U64(g->kernel.count),
			   V_U64(g->queue.count), TIME_VALUES(&g->total), TIME_VALUES(&g->call), TIME_VALUES(&g->queue),
			   TIME_VALUES(&g->kernel), V_TEXT(g->api), V_TEXT(cuda_work__name(&r->work, g->name)),
			   V_U64(g->kernel.total), V_TEXT(gpu_model__short_name(r->work.model, g->name)));
	table__sort(t, "kernel_ns");
}

/* Adds a row for each line or, if `whole`, for each stack. */
static void fill_stacks(struct launch_report *r, const struct map *map, bool whole, struct table *t)
{
	static char text[16 << 10];

	MAP_EACH_ENTRY(const struct stack_group *g, const struct stack_key *k, map) {
		text[0] = '\0';
		if (whole)
			stacks__folded(r->work.stacks, k->stack, text, sizeof(text));
		else
			stacks__label(r->work.stacks, k->stack, text, sizeof(text));
		table__add(t, V_U64(k->pid), V_DBL(table__percent(g->ns, r->kernel_ns)), V_U64(g->ns),
			   V_U64(g->kernels), V_U64(g->launches), V_U64(g->queued), V_U64(g->delayed), V_TEXT(text),
			   V_U64(g->longest), V_TEXT(cuda_work__name(&r->work, g->name)));
	}
	table__sort(t, "kernel_ns");
}

static void add_findings(struct launch_report *r, struct report_output *out)
{
	const struct stack_group *top = NULL;
	char label[STACK_LABEL];
	u32 line = 0;

	for (u32 i = 0; i < r->lines.n; i++) {
		const struct stack_group *g = map__value(&r->lines, i);

		if (!top || g->ns > top->ns) {
			top = g;
			line = ((const struct stack_key *)map__key(&r->lines, i))->stack;
		}
	}
	if (top)
		report_output__finding(out, "%.1f%% of %s of kernel time was launched by %s, in %s launch%s.",
				       table__percent(top->ns, r->kernel_ns), TEXT_NS(r->kernel_ns),
				       stacks__label(r->work.stacks, line, label, sizeof(label)),
				       TEXT_COUNT(top->launches), text__es(top->launches));
	if (r->queued)
		report_output__finding(out, "A kernel began %s after its launch had returned, on average.",
				       TEXT_NS(r->queue_ns / r->queued));
	if (r->lines.n && r->stack_ns < r->kernel_ns)
		report_output__note(out, "%.1f%% of kernel time has no Python stack.",
				    table__percent(r->kernel_ns - r->stack_ns, r->kernel_ns));
	if (!r->lines.n && r->groups.n)
		report_output__note(out, "No launch has a Python stack: `sonde record --cuda=stacks` records them.");
}

static void free_all(struct launch_report *r)
{
	MAP_EACH(struct launch_group *g, &r->groups) {
		stats__free(&g->total, &r->work.pool);
		stats__free(&g->call, &r->work.pool);
		stats__free(&g->queue, &r->work.pool);
		stats__free(&g->kernel, &r->work.pool);
	}
	MAPS_FREE(&r->groups, &r->lines, &r->stacks);
	cuda_work__free(&r->work);
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(
		out, "summary", "Kernels by thread and launch (T: in all, A: the call, Q: queued, K: on the device)",
		launch_columns);
	struct launch_report r = {};
	int err;

	map__init(&r.groups, sizeof(struct launch_key), sizeof(struct launch_group));
	map__init(&r.lines, sizeof(struct stack_key), sizeof(struct stack_group));
	map__init(&r.stacks, sizeof(struct stack_key), sizeof(struct stack_group));
	err = cuda_work__read(&r.work, args, on_work, &r);
	if (!err) {
		t->limit = 30;
		t->details =
			"api_max_ns api_median_ns queue_max_ns total_max_ns queue_median_ns total_median_ns kernel_median_ns";
		fill_launches(&r, t);
		t = REPORT_TABLE(out, "lines", "Kernel time by the line of Python that launched", line_columns);
		t->limit = 30;
		fill_stacks(&r, &r.lines, false, t);
		t = REPORT_MACHINE_TABLE(out, "stacks", "Kernel time by the stack that launched", line_columns);
		fill_stacks(&r, &r.stacks, true, t);
		add_findings(&r, out);
		cuda_work__add_notes(&r.work, out,
				     r.kernel_ns || r.groups.n ? NULL : "No kernel with device times was recorded");
	}
	free_all(&r);
	return err;
}

REPORT(cuda_kern_launch) = {
	.name = "cuda-kern-launch",
	.doc = "kernels by thread and line of Python: time in the launching call, in the queue and on the device",
	.kinds = "gpu_kernel,gpu_graph",
	.run = run,
};
