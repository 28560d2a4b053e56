// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes https://ui.perfetto.dev's format; times are on CLOCK_BOOTTIME, as in Perfetto's own traces. See perfetto.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto.h"
#include "util/array.h"

static int nothing(struct perfetto *p, const struct view *v)
{
	return 0;
}

static int slice(struct perfetto *p, const struct view *v)
{
	perfetto__slice(p, v);
	return 0;
}

static int gil_wait(struct perfetto *p, const struct view *v)
{
	perfetto__slice(p, v);
	return perfetto__count_gil(p, v);
}

static int loss(struct perfetto *p, const struct view *v)
{
	perfetto__loss(p, v);
	return 0;
}

static int emit_cost(struct perfetto *p, const struct view *v)
{
	perfetto__cost(p, v);
	return 0;
}

static int clocks(struct perfetto *p, const struct view *v)
{
	perfetto__put_clocks(p, (u64)view__get(v, "monotonic"), (u64)view__get(v, "realtime"));
	return 0;
}

static int gpu_clock(struct perfetto *p, const struct view *v)
{
	perfetto__gpu_clock(p, v);
	return 0;
}

static int gpu_dropped(struct perfetto *p, const struct view *v)
{
	perfetto__gpu_dropped(p, v);
	return 0;
}

static int gpu_shim(struct perfetto *p, const struct view *v)
{
	perfetto__slice(p, v);
	perfetto__gpu_shim(p, v);
	return 0;
}

static int nvml_value(struct perfetto *p, const struct view *v)
{
	return perfetto__gpu_metric(p, v);
}

static int forked(struct perfetto *p, const struct view *v)
{
	int err = perfetto__fork(p, v);

	perfetto__slice(p, v);
	return err;
}

static int execed(struct perfetto *p, const struct view *v)
{
	int err = perfetto__exec(p, v);

	perfetto__slice(p, v);
	return err;
}

/* Other kinds are slices or instants on their thread, except metadata. */
static const struct drawing {
	const char *kind;
	int (*draw)(struct perfetto *p, const struct view *v);
} drawings[] = {
	{ "sched_run", perfetto__run },
	{ "sched_off", perfetto__off },
	{ "gil_wait", gil_wait },
	{ "proc_fork", forked },
	{ "proc_exec", execed },
	{ "meta_loss", loss },
	{ "meta_cost", emit_cost },
	{ "meta_clock", clocks },
	{ "sample_cpu", perfetto__sample },
	{ "torch_alloc", perfetto__torch_alloc },
	{ "gpu_memory", nothing }, /* perfetto__gpu_work() counts it */
	{ "torch_module", nothing }, /* perfetto__gpu_work() draws it */
	{ "gpu_clock", gpu_clock },
	{ "gpu_dropped", gpu_dropped },
	{ "gpu_shim", gpu_shim },
	{ "nvml_value", nvml_value },
};

static const struct drawing *drawing_of(const struct schema_event *e)
{
	static const struct drawing of_slices = { NULL, slice }, of_nothing = { NULL, nothing };
	size_t i;

	for (i = 0; i < ARRAY_LEN(drawings); i++) {
		if (!strcmp(e->name, drawings[i].kind))
			return &drawings[i];
	}
	return e->role != EVENT_LISTS && !meaning__of(e)->is_part ? &of_slices : &of_nothing;
}

static int on_event(const struct view *v, void *arg)
{
	struct perfetto *p = arg;
	int err;

	perfetto__maybe_next_frame(p);
	err = drawing_of(v->event)->draw(p, v);
	return err ? err : p->packet.failed ? -ENOMEM : p->err;
}

static int begin(struct export *e)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	e->data = p;
	p->e = e;
	p->schema = trace__schema(e->trace);
	p->order = order__new(on_event, p);
	err = perfetto__open_stacks(p);
	if (!err)
		err = p->order ? perfetto__load_clocks(p) : -ENOMEM;
	if (!err)
		err = perfetto__load_containers(p);
	if (!err)
		err = gpus__load(&p->gpus, e->trace);
	p->correlates = gpus__traced(e->trace);
	return err ? err : perfetto__open(p);
}

static int rows(struct export *e, const struct rows *rows)
{
	struct perfetto *p = e->data;

	/* Kinds that are not drawn, such as strings and maps, are not sorted. */
	return drawing_of(rows__event(rows))->draw == nothing ? 0 : order__add(p->order, rows);
}

static int end(struct export *e)
{
	struct perfetto *p = e->data;
	int err = 0, closed;

	if (!p)
		return 0;
	if (p->out) {
		err = order__finish(p->order);
		/* The models need memory, too. */
		order__free(p->order);
		p->order = NULL;
		if (!err)
			err = perfetto__blame(p);
		if (!err)
			err = perfetto__gpu_work(p);
		if (!err)
			err = perfetto__torch_steps(p);
		if (!err)
			err = perfetto__findings(p);
		perfetto__flush_sched(p, true);
		perfetto__finish_marks(p);
		perfetto__put_idle_processes(p);
	}
	closed = perfetto__close(p);
	order__free(p->order);
	perfetto__free_tracks(p);
	perfetto__free_sched(p);
	perfetto__free_marks(p);
	perfetto__free_stacks(p);
	perfetto__free_gpu(p);
	perfetto__free_gpu_counters(p);
	perfetto__free_torch(p);
	gpus__free(&p->gpus);
	free(p);
	return err ? err : closed;
}

EXPORTER(perfetto) = {
	.name = "perfetto",
	.doc = "for https://ui.perfetto.dev; in zstd frames if OUT ends in .zst",
	.binary = true,
	.begin = begin,
	.rows = rows,
	.end = end,
};
