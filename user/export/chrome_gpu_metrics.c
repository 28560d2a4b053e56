// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the metrics of NVML as counters ("C") of the GPU, which is a process with the GPU's number as in Kineto. */
#include <errno.h>

#include "export/chrome.h"
#include "export/gpus.h"
#include "model/gpu_metrics.h"
#include "model/view.h"

struct metrics_pass {
	struct export *e;
	struct gpus gpus;
};

static int put_value(struct metrics_pass *p, const struct view *v)
{
	const struct gpu_metric *m = gpu_metric__of((u64)view__get(v, "metric"));
	u32 gpu;

	if (!m || m->is_of_process || m->is_constant)
		return 0;
	gpu = gpus__number(&p->gpus, 0, (u32)view__get(v, "device"));
	if (gpu == GPUS_MAX)
		return -ENOMEM;
	chrome__next_event(p->e);
	fprintf(p->e->out,
		"{\"ph\":\"C\",\"name\":\"GPU %u %s\",\"cat\":\"gpu_metric\",\"pid\":%u,\"tid\":0,\"ts\":", gpu,
		m->title, gpu);
	chrome__put_time(p->e, (u64)view__get(v, "time"));
	fprintf(p->e->out, ",\"args\":{\"%s\":%.10g}}", *m->unit ? m->unit : "count",
		gpu_metric__value(m, (u64)view__get(v, "value")));
	return ferror(p->e->out) ? -EIO : 0;
}

static int on_values(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = put_value(arg, &v);
	return err;
}

/* A process that has no work of a GPU still has to be named. */
static void put_names(struct metrics_pass *p)
{
	char name[128];

	for (u32 i = 0; i < p->gpus.n && !gpus__traced(p->e->trace); i++)
		if (p->gpus.list[i].is_used)
			chrome__put_name(p->e, "process_name", i, 0, gpus__name(&p->gpus, i, name, sizeof(name)));
}

int chrome__put_gpu_metrics(struct export *e)
{
	struct metrics_pass p = { .e = e };
	int err;

	if (!trace__has(e->trace, "nvml_value"))
		return 0;
	err = gpus__load(&p.gpus, e->trace);
	if (!err)
		put_names(&p);
	err = err ?: trace__read_kind(e->trace, "nvml_value", on_values, &p);
	gpus__free(&p.gpus);
	return err;
}
