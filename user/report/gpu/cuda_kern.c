// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report cuda-kern: kernels by name, as nsys's cuda_gpu_kern_sum. */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "output/text.h"
#include "report/gpu/cuda_work.h"
#include "util/saturate.h"

struct kernel {
	const char *name;
	struct stats time;
};

struct line_key {
	XXH128_hash_t name;
	u64 line;
};

struct kern_report {
	struct cuda_work work;
	struct map kernels; /* hash of the name -> struct kernel */
	struct map host; /* the same for processes without device times */
	struct map lines; /* struct line_key -> u64 ns */
	u64 total, host_total;
	const char *running; /* of the kernels that had not ended, the one that had run longest */
	u64 running_ns, unfinished;
};

static const struct column columns[] = {
	{ "time_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total Time (ns)", VALUE_U64, SHOW_COUNT },
	{ "instances", "Instances", VALUE_U64, SHOW_COUNT },
	CUDA_STATS("ns", " (ns)", SHOW_COUNT),
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "short_name", "Short name", VALUE_TEXT, SHOW_NEVER },
	{ "mangled_name", "Mangled name", VALUE_TEXT, SHOW_NEVER },
};

static int add_line(struct kern_report *r, const struct gpu_work *w, XXH128_hash_t name)
{
	struct line_key key = { .name = name, .line = cuda_work__line(&r->work, w->launch) };
	u64 *ns = key.line ? map__get(&r->lines, &key) : NULL;

	if (ns)
		*ns += w->end - w->start;
	return ns || !key.line ? 0 : -ENOMEM;
}

static int on_work(const struct gpu_work *w, void *arg)
{
	XXH128_hash_t key = XXH3_128bits(w->name ? w->name : "", w->name ? strlen(w->name) : 0);
	struct kern_report *r = arg;
	struct kernel *k;
	int err;

	if (w->kind != GPU_KERNEL)
		return 0;
	if (!cuda_work__is_whole(w)) {
		if (!r->unfinished++ || w->end - w->start > r->running_ns) {
			r->running_ns = w->end - w->start;
			r->running = w->name;
		}
		return 0;
	}
	k = map__get(w->host_time ? &r->host : &r->kernels, &key);
	if (!k)
		return -ENOMEM;
	k->name = w->name;
	*(w->host_time ? &r->host_total : &r->total) += w->end - w->start;
	err = stats__add(&k->time, &r->work.pool, w->end - w->start);
	return err || w->host_time ? err : add_line(r, w, key);
}

static void fill(struct kern_report *r, const struct map *kernels, u64 total, struct table *t)
{
	MAP_EACH(struct kernel *k, kernels)
		table__add(t, V_DBL(table__percent(k->time.total, total)), V_U64(k->time.total), V_U64(k->time.count),
			   CUDA_STATS_VALUES(&k->time), V_TEXT(cuda_work__name(&r->work, k->name)),
			   V_TEXT(gpu_model__short_name(r->work.model, k->name)), V_TEXT(k->name));
	table__sort(t, "total_ns");
}

/* Returns the line of code that launched most of a kernel's time, 0 if not known. */
static u32 line_of(const struct kern_report *r, const XXH128_hash_t *name, u64 *most)
{
	u32 line = 0;

	*most = 0;
	MAP_EACH_ENTRY(const u64 *ns, const struct line_key *key, &r->lines) {
		if (*ns > *most && !memcmp(&key->name, name, sizeof(*name))) {
			*most = *ns;
			line = (u32)key->line;
		}
	}
	return line;
}

/* Adds a finding on the kernel launched most often, for traces without device times. */
static void add_host_finding(struct kern_report *r, struct report_output *out)
{
	const struct kernel *top = NULL;
	u64 n = 0;

	MAP_EACH(const struct kernel *k, &r->host) {
		n += k->time.count;
		if (!top || k->time.count > top->time.count)
			top = k;
	}
	if (top)
		report_output__finding(out, "%s kernel%s launched, most often %s (%s); when they ran is not known.",
				       TEXT_COUNT(n), n == 1 ? " was" : "s were",
				       cuda_work__short_name(&r->work, top->name), TEXT_COUNT(top->time.count));
}

static void add_findings(struct kern_report *r, struct report_output *out)
{
	char label[STACK_LABEL];
	const struct kernel *top = NULL;
	u32 at = 0, line;
	u64 ns;

	for (u32 i = 0; i < r->kernels.n; i++) {
		const struct kernel *k = map__value(&r->kernels, i);

		if (!top || k->time.total > top->time.total) {
			top = k;
			at = i;
		}
	}
	if (!top) {
		add_host_finding(r, out);
		return;
	}
	report_output__finding(out, "%.1f%% of %s of kernel time is %s: %s time%s, %s on average.",
			       table__percent(top->time.total, r->total), TEXT_NS(r->total),
			       cuda_work__short_name(&r->work, top->name), TEXT_COUNT(top->time.count),
			       text__s(top->time.count), TEXT_NS(saturate__round(top->time.mean)));
	line = line_of(r, map__key(&r->kernels, at), &ns);
	if (line)
		report_output__finding(out, "%.1f%% of that was launched by %s.", table__percent(ns, top->time.total),
				       stacks__label(r->work.stacks, line, label, sizeof(label)));
}

static void free_kernels(struct kern_report *r, struct map *kernels)
{
	for (u32 i = 0; i < kernels->n; i++)
		stats__free(&((struct kernel *)map__value(kernels, i))->time, &r->work.pool);
	map__free(kernels);
}

/* Adds a finding on a kernel that did not end: the device hangs, or the kernel is longer than the trace. */
static void add_running_finding(const struct kern_report *r, struct report_output *out)
{
	if (r->running_ns)
		report_output__finding(out, "When the trace ended %s had run for %s.",
				       cuda_work__short_name(&r->work, r->running), TEXT_NS(r->running_ns));
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "summary", "Kernels by name", columns), *host;
	struct kern_report r = {};
	int err;

	map__init(&r.kernels, sizeof(XXH128_hash_t), sizeof(struct kernel));
	map__init(&r.host, sizeof(XXH128_hash_t), sizeof(struct kernel));
	map__init(&r.lines, sizeof(struct line_key), sizeof(u64));
	err = cuda_work__read(&r.work, args, on_work, &r);
	if (!err) {
		t->limit = 30;
		fill(&r, &r.kernels, r.total, t);
		host = REPORT_TABLE(out, "on_host",
				    "Kernels of processes without device times: the host's time in the launch",
				    columns);
		host->limit = 30;
		fill(&r, &r.host, r.host_total, host);
		add_findings(&r, out);
		add_running_finding(&r, out);
		cuda_work__add_notes(&r.work, out,
				     r.kernels.n || r.host.n || r.unfinished ? NULL : "No kernel was recorded");
	}
	free_kernels(&r, &r.kernels);
	free_kernels(&r, &r.host);
	map__free(&r.lines);
	cuda_work__free(&r.work);
	return err;
}

REPORT(cuda_kern) = {
	.name = "cuda-kern",
	.doc = "kernels by name: count and device time, and which code launched most",
	.kinds = "gpu_kernel,gpu_graph",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_KERNEL,
};
