// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of report gpu that NVML recorded: use, clocks, power and the like, and the processes on each GPU. */
#include "model/gpu_metrics.h"

#include "findings/about.h"
#include "output/text.h"
#include "report/gpu/gpu.h"

static const struct column metric_columns[] = {
	{ "gpu", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "model", "Model", VALUE_TEXT, SHOW_PLAIN },
	{ "metric", "Metric", VALUE_TEXT, SHOW_PLAIN },
	{ "unit", "Unit", VALUE_TEXT, SHOW_PLAIN },
	/* not percentages: SHOW_PERCENT prints numbers with one decimal */
	{ "mean", "Mean", VALUE_DOUBLE, SHOW_PERCENT },
	{ "least", "Least", VALUE_DOUBLE, SHOW_PERCENT },
	{ "most", "Most", VALUE_DOUBLE, SHOW_PERCENT },
	{ "increase", "Increase", VALUE_DOUBLE, SHOW_PERCENT },
	{ "values", "Values", VALUE_U64, SHOW_COUNT },
};

static void fill_metrics(const struct gpu_metrics *m, struct table *t)
{
	MAP_EACH(const struct gpu_metrics_device *d, &m->devices) {
		for (u32 i = 0; i < GPU_METRICS_MAX; i++) {
			const struct gpu_metric_sum *s = &d->sums[i];
			const struct gpu_metric *metric = s->n ? gpu_metric__of(i) : NULL;
			double scale = metric ? metric->scale : 1;

			if (!metric || metric->is_bits)
				continue;
			table__add(t, V_U64(d->device), V_TEXT_IF(d->model), V_TEXT(metric->title),
				   V_TEXT_IF(metric->unit), V_DBL(gpu_metric_sum__mean(s) / scale),
				   V_DBL((double)s->least / scale), V_DBL((double)s->most / scale),
				   metric->is_counter ? V_DBL((double)(s->last - s->first) / scale) : V_NONE,
				   V_U64(s->n));
		}
	}
}

static const struct column limit_columns[] = {
	{ "gpu", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "limit", "Clocks limited by", VALUE_TEXT, SHOW_PLAIN },
	{ "time_percent", "Of the time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "readings", "Readings", VALUE_U64, SHOW_COUNT },
};

static void fill_limits(const struct gpu_metrics *m, struct table *t)
{
	char text[128];

	MAP_EACH(const struct gpu_metrics_device *d, &m->devices)
		for (u32 i = 0; i < sizeof(d->by_limit) / sizeof(d->by_limit[0]); i++)
			if (d->by_limit[i])
				table__add(t, V_U64(d->device), V_TEXT(gpu_limits__text(text, sizeof(text), 1ULL << i)),
					   V_DBL(table__percent(d->by_limit[i], d->readings)), V_U64(d->by_limit[i]));
}

static const struct column user_columns[] = {
	{ "gpu", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "recorded", "Recorded", VALUE_TEXT, SHOW_PLAIN },
	{ "device", "Its number of the GPU", VALUE_S64, SHOW_PLAIN },
	{ "memory_bytes", "Memory (most)", VALUE_U64, SHOW_BYTES },
	{ "busy_percent", "Busy (%)", VALUE_DOUBLE, SHOW_PERCENT },
};

static void fill_users(const struct gpu_metrics *m, const struct query *q, struct table *t)
{
	char buf[128];

	MAP_EACH_ENTRY(const struct gpu_user *u, const struct gpu_user_key *key, &m->users) {
		const char *name = gpu_metrics__process(m, q, key->pid, buf, sizeof(buf));
		const char *recorded = gpu_metrics__is_other(q, key->pid) ? "no" : "yes";
		s64 own = gpu_metrics__own_device(m, key->device, key->pid);

		/* without family proc it is not known */
		if (!query__has_family(q, "proc"))
			recorded = NULL;
		table__add(t, V_U64(key->device), V_U64(key->pid), V_TEXT_IF(name), V_TEXT(recorded),
			   own < 0 ? V_NONE : V_S64(own), u->memory.n ? V_U64(u->memory.most) : V_NONE,
			   u->busy.n ? V_DBL(gpu_metric_sum__mean(&u->busy)) : V_NONE);
	}
}

int gpu_report__add_metrics(const struct query *args, struct report_output *out)
{
	struct finding_input in = { .q = args };
	struct table *metrics, *limits, *users;
	struct gpu_metrics m;
	int err;

	if (!trace__has(args->trace, "nvml_value"))
		return 0;
	metrics =
		REPORT_TABLE(out, "metrics", "Metrics of GPUs, as NVML reports them, of all processes", metric_columns);
	limits = REPORT_TABLE(out, "limits", "What limited the clocks of GPUs with work", limit_columns);
	users = REPORT_TABLE(out, "users", "Processes on GPUs, as NVML lists them", user_columns);
	err = gpu_metrics__read(&m, args);
	if (!err) {
		fill_metrics(&m, metrics);
		fill_limits(&m, limits);
		fill_users(&m, args, users);
		report_output__note(
			out,
			"The numbers of these GPUs are those of nvidia-smi. A process numbers those that CUDA_VISIBLE_DEVICES gives it.");
	}
	gpu_metrics__free(&m);
	return err ?: findings__add_about(&in, findings__find_gpu_metrics, out);
}
