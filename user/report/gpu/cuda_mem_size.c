// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report cuda-mem-size: sizes of copies and sets by operation, as nsys's cuda_gpu_mem_size_sum. */
#include "output/text.h"
#include "report/gpu/cuda_mem.h"
#include "util/saturate.h"

static const struct column columns[] = {
	{ "total_bytes", "Total", VALUE_U64, SHOW_BYTES },
	{ "count", "Count", VALUE_U64, SHOW_COUNT },
	CUDA_STATS("bytes", "", SHOW_BYTES),
	{ "operation", "Operation", VALUE_TEXT, SHOW_PLAIN },
	{ "only_by_calls", "Known from calls alone", VALUE_U64, SHOW_NEVER },
};

static void fill(const struct map *groups, bool host, struct table *t)
{
	MAP_EACH(struct cuda_mem_group *g, groups)
		table__add(t, V_U64(g->size.total), V_U64(g->size.count), CUDA_STATS_VALUES(&g->size),
			   V_TEXT(g->operation), V_U64(host));
	table__sort(t, "total_bytes");
}

static void add_findings(const struct cuda_mem *c, struct report_output *out)
{
	const struct map *maps[] = { &c->device, &c->host };
	const struct cuda_mem_group *top = NULL;

	for (u32 i = 0; i < 2; i++)
		MAP_EACH(const struct cuda_mem_group *g, maps[i])
			if (!top || g->size.total > top->size.total)
				top = g;
	if (top)
		report_output__finding(out, "%s of the %s that were copied or set were %s, %s each on average.",
				       TEXT_BYTES(top->size.total), TEXT_BYTES(c->bytes), top->operation,
				       TEXT_BYTES(saturate__u64(top->size.mean)));
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "summary", "Copies and sets by size", columns);
	struct cuda_mem c;
	int err = cuda_mem__read(&c, args);

	if (!err) {
		fill(&c.device, false, t);
		t = REPORT_TABLE(out, "host", "Of processes without device times, by their calls", columns);
		fill(&c.host, true, t);
		add_findings(&c, out);
		cuda_work__add_notes(&c.work, out, c.device.n || c.host.n ? NULL : "No copy or set was recorded");
	}
	cuda_mem__free(&c);
	return err;
}

REPORT(cuda_mem_size) = {
	.name = "cuda-mem-size",
	.doc = "copies and fills of memory by kind: count and size",
	.kinds = "gpu_memcpy,gpu_memset",
	.run = run,
};
