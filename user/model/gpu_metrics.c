// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/view.h"
#include "output/text.h"
#include "probes/nvml/nvml.h"
#include "util/array.h"

_Static_assert(NVML_METRICS <= GPU_METRICS_MAX, "gpu_metrics_device.sums");

static const struct gpu_metric metrics[] = {
	[NVML_METRIC_BUSY] = { "busy", "busy", "%", 1 },
	[NVML_METRIC_MEMORY_BUSY] = { "memory_busy", "memory accessed", "%", 1 },
	[NVML_METRIC_MEMORY_USED] = { "memory_used", "memory used", "MiB", 1 << 20 },
	[NVML_METRIC_MEMORY_TOTAL] = { "memory_total", "memory", "MiB", 1 << 20, .is_constant = true },
	[NVML_METRIC_SM_CLOCK] = { "sm_clock", "SM clock", "MHz", 1 },
	[NVML_METRIC_SM_CLOCK_MAX] = { "sm_clock_max", "highest SM clock", "MHz", 1, .is_constant = true },
	[NVML_METRIC_MEMORY_CLOCK] = { "memory_clock", "memory clock", "MHz", 1 },
	[NVML_METRIC_MEMORY_CLOCK_MAX] = { "memory_clock_max", "highest memory clock", "MHz", 1, .is_constant = true },
	[NVML_METRIC_CLOCK_LIMITS] = { "clock_limits", "limits of the clocks", "bits", 1, .is_bits = true },
	[NVML_METRIC_POWER] = { "power", "power", "W", 1000 },
	[NVML_METRIC_POWER_LIMIT] = { "power_limit", "power limit", "W", 1000 },
	[NVML_METRIC_TEMPERATURE] = { "temperature", "temperature", "C", 1 },
	[NVML_METRIC_TEMPERATURE_SLOWDOWN] = { "temperature_slowdown", "temperature of slowdown", "C", 1,
					       .is_constant = true },
	[NVML_METRIC_PCIE_SENT] = { "pcie_sent", "PCIe sent", "MB/s", 1000 },
	[NVML_METRIC_PCIE_RECEIVED] = { "pcie_received", "PCIe received", "MB/s", 1000 },
	[NVML_METRIC_PCIE_REPLAYS] = { "pcie_replays", "PCIe replays", "", 1, .is_counter = true },
	[NVML_METRIC_NVLINK_SENT] = { "nvlink_sent", "NVLink sent", "MiB", 1024, .is_counter = true },
	[NVML_METRIC_NVLINK_RECEIVED] = { "nvlink_received", "NVLink received", "MiB", 1024, .is_counter = true },
	[NVML_METRIC_NVLINK_CRC_ERRORS] = { "nvlink_crc_errors", "NVLink CRC errors", "", 1, .is_counter = true },
	[NVML_METRIC_NVLINK_REPLAYS] = { "nvlink_replays", "NVLink replays", "", 1, .is_counter = true },
	[NVML_METRIC_NVLINK_RECOVERIES] = { "nvlink_recoveries", "NVLink recoveries", "", 1, .is_counter = true },
	[NVML_METRIC_ECC_CORRECTED] = { "ecc_corrected", "corrected ECC errors", "", 1, .is_counter = true },
	[NVML_METRIC_ECC_UNCORRECTED] = { "ecc_uncorrected", "uncorrected ECC errors", "", 1, .is_counter = true },
	[NVML_METRIC_PROCESS_MEMORY] = { "process_memory", "memory of process", "MiB", 1 << 20, .is_of_process = true },
	[NVML_METRIC_PROCESS_BUSY] = { "process_busy", "busy with process", "%", 1, .is_of_process = true },
	[NVML_METRIC_PROCESS_MEMORY_BUSY] = { "process_memory_busy", "memory accessed by process", "%", 1,
					      .is_of_process = true },
};

const struct gpu_metric *gpu_metric__of(u64 metric)
{
	return metric < ARRAY_LEN(metrics) && metrics[metric].key ? &metrics[metric] : NULL;
}

double gpu_metric__value(const struct gpu_metric *m, u64 value)
{
	return (double)value / m->scale;
}

/* Of a GPU that has work. Clocks that a user has set are no fault, but the GPU runs slower for them. */
static const char *const limit_texts[] = {
	[1] = "clocks that were set",
	[2] = "power limit",
	[3] = "hardware slowdown",
	[4] = "sync boost with other GPUs",
	[5] = "temperature",
	[6] = "temperature, by the hardware",
	[7] = "power brake, by the power supply",
	[8] = "clocks of the display",
	[9] = "limit of the board",
	[10] = "reliability",
};

static bool is_limit(u32 bit)
{
	return bit < ARRAY_LEN(limit_texts) && limit_texts[bit];
}

char *gpu_limits__text(char *buf, size_t size, u64 limits)
{
	struct text_buffer s = { .buf = buf, .size = size };
	bool any = false;

	buf[0] = '\0';
	for (u32 bit = 0; bit < ARRAY_LEN(limit_texts); bit++) {
		if (!(limits >> bit & 1) || !is_limit(bit))
			continue;
		text__add(&s, "%s%s", any ? ", " : "", limit_texts[bit]);
		any = true;
	}
	return buf;
}

static void add(struct gpu_metric_sum *s, u64 value)
{
	if (!s->n++)
		s->first = s->least = s->most = value;
	s->sum += (double)value;
	s->last = value;
	s->least = value < s->least ? value : s->least;
	s->most = value > s->most ? value : s->most;
}

double gpu_metric_sum__mean(const struct gpu_metric_sum *s)
{
	return s->n ? s->sum / (double)s->n : 0;
}

/* Joins the clock with what limits it: both are read together, the clock first. */
static void add_limits(struct gpu_metrics_device *d, u64 time, u64 limits)
{
	bool any = false;

	if (d->clock_time != time)
		return;
	d->readings++;
	/* an idle GPU lowers its clocks itself */
	if (limits & NVML_LIMIT_IDLE)
		return;
	for (u32 bit = 0; bit < ARRAY_LEN(d->by_limit); bit++) {
		if (!(limits >> bit & 1) || !is_limit(bit))
			continue;
		d->by_limit[bit]++;
		any = true;
	}
	d->limited += any;
	d->limited_clock += any ? (double)d->clock : 0;
}

static int add_user(struct gpu_metrics *m, const struct gpu_user_key *key, u64 metric, u64 value)
{
	struct gpu_user *u = map__get(&m->users, key);

	if (!u)
		return -ENOMEM;
	if (metric == NVML_METRIC_PROCESS)
		u->kinds |= value;
	else if (metric == NVML_METRIC_PROCESS_MEMORY)
		add(&u->memory, value);
	else if (metric == NVML_METRIC_PROCESS_BUSY)
		add(&u->busy, value);
	return 0;
}

static bool is_constant(u64 metric)
{
	const struct gpu_metric *m = gpu_metric__of(metric);

	return m && m->is_constant;
}

/* A constant is read once, mostly before the selected time. */
static int on_constants(const struct rows *rows, void *arg)
{
	struct gpu_metrics *m = arg;

	ROWS_EACH(v, rows) {
		u32 device = (u32)view__get(&v, "device");
		u64 metric = (u64)view__get(&v, "metric");
		struct gpu_metrics_device *d = is_constant(metric) ? map__get(&m->devices, &device) : NULL;

		if (!is_constant(metric))
			continue;
		if (!d)
			return -ENOMEM;
		d->device = device;
		add(&d->sums[metric], (u64)view__get(&v, "value"));
	}
	return 0;
}

static int add_value(struct gpu_metrics *m, const struct view *v)
{
	struct gpu_user_key key = { (u32)view__get(v, "device"), (u32)view__get(v, "process") };
	u64 metric = (u64)view__get(v, "metric"), value = (u64)view__get(v, "value"), time = (u64)view__get(v, "time");
	struct gpu_metrics_device *d;

	if (metric >= GPU_METRICS_MAX)
		return 0;
	if (key.pid)
		return add_user(m, &key, metric, value);
	d = map__get(&m->devices, &key.device);
	if (!d)
		return -ENOMEM;
	d->device = key.device;
	if (!is_constant(metric))
		add(&d->sums[metric], value);
	if (metric == NVML_METRIC_SM_CLOCK) {
		d->clock = value;
		d->clock_time = time;
	} else if (metric == NVML_METRIC_CLOCK_LIMITS) {
		add_limits(d, time, value);
	}
	return 0;
}

static int on_values(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = add_value(arg, &v);
	return err;
}

static int on_devices(const struct rows *rows, void *arg)
{
	struct gpu_metrics *m = arg;

	ROWS_EACH(v, rows) {
		u32 device = (u32)view__get(&v, "device"), len;
		struct gpu_metrics_device *d = map__get(&m->devices, &device);
		const char *model = view__text(&v, schema_event__field(v.event, "model"), &len);

		if (!d)
			return -ENOMEM;
		d->device = device;
		d->is_described = true;
		snprintf(d->model, sizeof(d->model), "%.*s", (int)(len < 64 ? len : 64), model);
		d->uuid_first = (u64)view__get(&v, "uuid_first");
		d->uuid_last = (u64)view__get(&v, "uuid_last");
	}
	return 0;
}

/* A device of a process, as a shim in it reported it */
struct own_key {
	u64 uuid_first, uuid_last;
	u32 pid, unused;
};

static int on_own_devices(const struct rows *rows, void *arg)
{
	struct gpu_metrics *m = arg;

	ROWS_EACH(v, rows) {
		const struct own_key key = { (u64)view__get(&v, "uuid_first"), (u64)view__get(&v, "uuid_last"),
					     (u32)view__get(&v, "pid"), 0 };
		u32 *number = map__get(&m->own_devices, &key);

		if (!number)
			return -ENOMEM;
		*number = (u32)view__get(&v, "device") + 1;
	}
	return 0;
}

s64 gpu_metrics__own_device(const struct gpu_metrics *m, u32 device, u32 pid)
{
	const struct gpu_metrics_device *d = map__find(&m->devices, &device);
	const struct own_key key = { d ? d->uuid_first : 0, d ? d->uuid_last : 0, pid, 0 };
	const u32 *number = map__find(&m->own_devices, &key);

	return number && (key.uuid_first || key.uuid_last) ? (s64)*number - 1 : -1;
}

static int on_names(const struct rows *rows, void *arg)
{
	struct gpu_metrics *m = arg;

	ROWS_EACH(v, rows) {
		u32 pid = (u32)view__get(&v, "process"), len;
		const char *text = view__text(&v, schema_event__field(v.event, "text"), &len);
		char *name = map__get(&m->names, &pid);

		if (!name)
			return -ENOMEM;
		snprintf(name, m->names.value_size, "%.*s", (int)len, text);
	}
	return 0;
}

int gpu_metrics__read(struct gpu_metrics *m, const struct query *q)
{
	struct query all = *q, values = *q;

	map__init(&m->devices, sizeof(u32), sizeof(struct gpu_metrics_device));
	map__init(&m->users, sizeof(struct gpu_user_key), sizeof(struct gpu_user));
	map__init(&m->names, sizeof(u32), 128);
	map__init(&m->own_devices, sizeof(struct own_key), sizeof(u32));
	all.pids.n = all.tids.n = values.pids.n = values.tids.n = 0;
	all.from = all.to = 0;
	return query__read_kind(&all, "nvml_device", on_devices, m)	       ?:
		       query__read_kind(&all, "nvml_process", on_names, m)     ?:
		       query__read_kind(&all, "gpu_device", on_own_devices, m) ?:
		       query__read_kind(&all, "nvml_value", on_constants, m)   ?:
		       query__read_kind(&values, "nvml_value", on_values, m);
}

void gpu_metrics__free(struct gpu_metrics *m)
{
	MAPS_FREE(&m->devices, &m->users, &m->names, &m->own_devices);
}

const char *gpu_metrics__process(const struct gpu_metrics *m, const struct query *q, u32 pid, char *buf, size_t size)
{
	const char *title = names__title(q->names, buf, size, pid, 0), *name = map__find(&m->names, &pid);

	if (title && *title)
		return title;
	snprintf(buf, size, "%s", name ? name : "");
	return buf;
}

bool gpu_metrics__is_other(const struct query *q, u32 pid)
{
	if (!query__has_family(q, "proc"))
		return false;
	return !names__task(q->names, pid, 0) || (q->pids.n && !trace_ids__have(&q->pids, pid));
}
