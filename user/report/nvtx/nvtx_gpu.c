// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reports nvtx-gpu-proj and nvtx-kern (nsys's nvtx_gpu_proj_sum and nvtx_kern_sum): the work of GPUs that was launched
 * in a range, in it or in ranges inside it. A range's projection is from the first start to the last end of that work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/nvtx.h"
#include "output/text.h"
#include "report/gpu/cuda_work.h"
#include "report/nvtx/parts.h"

/* The work of one range: of each instance for the projection, of all for the kernels. */
struct instance {
	u64 first, last, operations;
};

struct kern_key {
	u32 label;
	u32 pid, tid;
	u32 is_started;
	const char *name; /* of a text that lives as long as the model */
};

struct kern_group {
	struct stats time;
	u32 last_range; /* index of the range that was counted last, plus 1 */
	u64 ranges;
};

struct proj_key {
	u32 label;
	u32 is_started;
};

struct proj_group {
	struct stats time;
	u64 range_ns, instances, operations, levels, children;
};

struct nvtx_gpu {
	struct cuda_work work;
	struct nvtx nvtx;
	struct map instances; /* struct nvtx_range * -> struct instance */
	struct map kernels; /* struct kern_key -> struct kern_group */
	struct map projections; /* struct proj_key -> struct proj_group */
	u64 outside; /* operations that no range contains */
};

static const struct column proj_columns[] = {
	{ "range", "Range", VALUE_TEXT, SHOW_PLAIN },
	{ "style", "Style", VALUE_TEXT, SHOW_PLAIN },
	{ "total_ns", "Total Proj Time", VALUE_U64, SHOW_NS },
	{ "range_ns", "Total Range Time", VALUE_U64, SHOW_NS },
	{ "instances", "Range Instances", VALUE_U64, SHOW_COUNT },
	{ "avg_ns", "Proj Avg", VALUE_DOUBLE, SHOW_NS },
	{ "median_ns", "Proj Med", VALUE_DOUBLE, SHOW_NS },
	{ "min_ns", "Proj Min", VALUE_U64, SHOW_NS },
	{ "max_ns", "Proj Max", VALUE_U64, SHOW_NS },
	{ "stddev_ns", "Proj StdDev", VALUE_DOUBLE, SHOW_NEVER },
	{ "operations", "Total GPU Ops", VALUE_U64, SHOW_COUNT },
	{ "avg_operations", "Avg GPU Ops", VALUE_DOUBLE, SHOW_NEVER },
	{ "avg_level", "Avg Range Lvl", VALUE_DOUBLE, SHOW_NEVER },
};

static const struct column kern_columns[] = {
	{ "range", "NVTX Range", VALUE_TEXT, SHOW_PLAIN },
	{ "style", "Style", VALUE_TEXT, SHOW_NEVER },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "instances", "NVTX Inst", VALUE_U64, SHOW_COUNT },
	{ "kernels", "Kern Inst", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total Time", VALUE_U64, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
	{ "min_ns", "Min", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "stddev_ns", "StdDev", VALUE_DOUBLE, SHOW_NEVER },
	{ "name", "Kernel Name", VALUE_TEXT, SHOW_PLAIN },
};

static int add_instance(struct nvtx_gpu *g, const struct nvtx_range *r, const struct gpu_work *w)
{
	struct instance *i = map__get(&g->instances, &r);

	if (!i)
		return -ENOMEM;
	i->first = !i->operations || w->start < i->first ? w->start : i->first;
	i->last = w->end > i->last ? w->end : i->last;
	i->operations++;
	return 0;
}

static int add_kernel(struct nvtx_gpu *g, const struct nvtx_thread *t, u32 range, const struct gpu_work *w)
{
	const struct nvtx_range *r = &t->ranges[range];
	struct kern_key key = { r->label, r->thread.pid, r->thread.tid, r->is_started, w->name };
	struct kern_group *k = map__get(&g->kernels, &key);

	if (!k)
		return -ENOMEM;
	k->ranges += k->last_range != range + 1;
	k->last_range = range + 1;
	return stats__add(&k->time, &g->work.pool, w->end - w->start);
}

/* All ranges of the launching thread that contain the launch. */
static int on_work(const struct gpu_work *w, void *arg)
{
	struct nvtx_gpu *g = arg;
	const struct gpu_launch *l = w->launch;
	const struct nvtx_thread *t = l ? nvtx__thread(&g->nvtx, (struct thread_key){ l->pid, l->tid }) : NULL;
	u32 range = t ? nvtx_thread__at(t, l->start) : NVTX_OUTSIDE;
	int err = 0;

	if (w->host_time || !cuda_work__is_whole(w))
		return 0;
	g->outside += range == NVTX_OUTSIDE;
	if (range == NVTX_OUTSIDE)
		return 0;
	if (w->kind == GPU_KERNEL)
		err = add_kernel(g, t, range, w);
	for (; !err && range != NVTX_OUTSIDE; range = t->ranges[range].around)
		if (t->ranges[range].end >= l->start)
			err = add_instance(g, &t->ranges[range], w);
	return err;
}

static int sum_instances(struct nvtx_gpu *g)
{
	int err = 0;

	MAP_EACH_ENTRY(const struct instance *i, const struct nvtx_range *const *range, &g->instances) {
		const struct nvtx_range *r = *range;
		struct proj_group *p = map__get(&g->projections, &(struct proj_key){ r->label, r->is_started });

		if (!p)
			return -ENOMEM;
		p->range_ns += r->end - r->start;
		p->instances++;
		p->operations += i->operations;
		p->levels += r->level;
		if (!err)
			err = stats__add(&p->time, &g->work.pool, i->last - i->first);
	}
	return err;
}

static const char *style(u32 is_started)
{
	return is_started ? "StartEnd" : "PushPop";
}

static void fill_projections(struct nvtx_gpu *g, struct table *t)
{
	MAP_EACH_ENTRY(struct proj_group *p, const struct proj_key *k, &g->projections)
		table__add(t, V_TEXT(NVTX_LABEL_OF(&g->nvtx, k->label)), V_TEXT(style(k->is_started)),
			   V_U64(p->time.total), V_U64(p->range_ns), V_U64(p->instances), CUDA_STATS_VALUES(&p->time),
			   V_U64(p->operations), V_DBL((double)p->operations / (double)p->instances),
			   V_DBL((double)p->levels / (double)p->instances));
	table__sort(t, "total_ns");
}

static void fill_kernels(struct nvtx_gpu *g, struct table *t)
{
	MAP_EACH_ENTRY(struct kern_group *e, const struct kern_key *k, &g->kernels)
		table__add(t, V_TEXT(NVTX_LABEL_OF(&g->nvtx, k->label)), V_TEXT(style(k->is_started)), V_U64(k->pid),
			   V_U64(k->tid), V_U64(e->ranges), V_U64(e->time.count), V_U64(e->time.total),
			   CUDA_STATS_VALUES(&e->time), V_TEXT(cuda_work__name(&g->work, k->name)));
	table__sort(t, "total_ns");
}

static void free_all(struct nvtx_gpu *g)
{
	MAP_EACH(struct kern_group *k, &g->kernels)
		stats__free(&k->time, &g->work.pool);
	MAP_EACH(struct proj_group *p, &g->projections)
		stats__free(&p->time, &g->work.pool);
	MAPS_FREE(&g->instances, &g->kernels, &g->projections);
	nvtx__free(&g->nvtx);
	cuda_work__free(&g->work);
}

static int run(const struct query *args, struct report_output *out, bool kernels)
{
	struct table *t =
		kernels ? REPORT_TABLE(out, "kernels", "Kernels by the innermost range of their launch", kern_columns) :
			  REPORT_TABLE(out, "projections", "Ranges projected to the GPU work launched in them",
				       proj_columns);
	struct nvtx_gpu g = {};
	int err;

	map__init(&g.instances, sizeof(struct nvtx_range *), sizeof(struct instance));
	map__init(&g.kernels, sizeof(struct kern_key), sizeof(struct kern_group));
	map__init(&g.projections, sizeof(struct proj_key), sizeof(struct proj_group));
	err = nvtx__read(&g.nvtx, args) ?: cuda_work__read(&g.work, args, on_work, &g) ?: sum_instances(&g);
	if (!err) {
		t->limit = 30;
		if (kernels)
			fill_kernels(&g, t);
		else
			fill_projections(&g, t);
		if (g.outside)
			report_output__note(out, "%s operation%s of GPUs %s launched outside of all ranges.",
					    TEXT_COUNT(g.outside), text__s(g.outside), g.outside == 1 ? "was" : "were");
		if (!g.nvtx.n)
			report__nothing(args, out, "No range of NVTX was recorded", "nvtx");
		cuda_work__add_notes(&g.work, out,
				     g.instances.n || !g.nvtx.n ? NULL : "No GPU work was launched in a range");
	}
	free_all(&g);
	return err;
}

static int run_projections(const struct query *args, struct report_output *out)
{
	return run(args, out, false);
}

int nvtx_kernels__run(const struct query *args, struct report_output *out)
{
	return run(args, out, true);
}

REPORT(nvtx_gpu_proj) = {
	.name = "nvtx-gpu-proj",
	.doc = "ranges of NVTX, from the first start to the last end of the GPU work launched in them",
	.kinds = "nvtx_range",
	.run = run_projections,
};

REPORT(nvtx_kern) = {
	.name = "nvtx-kern",
	.doc = "kernels by the range of NVTX in which they were launched",
	.kinds = "nvtx_range",
	.run = nvtx_kernels__run,
};
