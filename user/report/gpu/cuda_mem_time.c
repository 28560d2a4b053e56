// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report cuda-mem-time: times of copies and sets by operation, as nsys's cuda_gpu_mem_time_sum, and their bandwidth. */
#include "output/text.h"
#include "report/gpu/cuda_mem.h"
#include "util/saturate.h"

static const struct column columns[] = {
	{ "time_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total Time (ns)", VALUE_U64, SHOW_COUNT },
	{ "count", "Count", VALUE_U64, SHOW_COUNT },
	CUDA_STATS("ns", " (ns)", SHOW_COUNT),
	{ "operation", "Operation", VALUE_TEXT, SHOW_PLAIN },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "bytes_per_s", "Bandwidth (/s)", VALUE_DOUBLE, SHOW_BYTES },
};

static void fill(const struct map *groups, u64 total, bool device, struct table *t)
{
	MAP_EACH(struct cuda_mem_group *g, groups) {
		double rate = device ? cuda_mem__bandwidth(g->size.total, g->time.total) : 0;

		table__add(t, V_DBL(table__percent(g->time.total, total)), V_U64(g->time.total), V_U64(g->time.count),
			   CUDA_STATS_VALUES(&g->time), V_TEXT(g->operation), V_U64(g->size.total),
			   rate > 0 ? V_DBL(rate) : V_NONE);
	}
	table__sort(t, "total_ns");
}

static void add_findings(const struct cuda_mem *c, struct report_output *out)
{
	const struct cuda_mem_group *top = NULL;

	MAP_EACH(const struct cuda_mem_group *g, &c->device)
		if (!top || g->time.total > top->time.total)
			top = g;
	if (top && top->time.total && top->size.total)
		report_output__finding(
			out, "%.1f%% of the time of copies and sets (%s) was %s: %s, %s a second.",
			table__percent(top->time.total, c->total), TEXT_NS(c->total), top->operation,
			TEXT_BYTES(top->size.total),
			TEXT_BYTES(saturate__u64(cuda_mem__bandwidth(top->size.total, top->time.total))));
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "summary", "Copies and sets on the devices", columns);
	struct cuda_mem c;
	int err = cuda_mem__read(&c, args);

	if (!err) {
		fill(&c.device, c.total, true, t);
		t = REPORT_TABLE(out, "on_host", "Of processes without device times: the host's time in the call",
				 columns);
		fill(&c.host, c.host_total, false, t);
		add_findings(&c, out);
		cuda_work__add_notes(&c.work, out, c.device.n || c.host.n ? NULL : "No copy or set was recorded");
	}
	cuda_mem__free(&c);
	return err;
}

REPORT(cuda_mem_time) = {
	.name = "cuda-mem-time",
	.doc = "copies and fills of memory by kind: count, device time and bandwidth",
	.kinds = "gpu_memcpy,gpu_memset",
	.run = run,
};
