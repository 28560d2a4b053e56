/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What NVML reported about GPUs (family nvml): sums of each metric, what limited the clocks, and the processes. */
#pragma once

#include "model/query.h"
#include "util/map.h"

struct gpu_metric {
	const char *key; /* "sm_clock" */
	const char *title; /* "SM clock" */
	const char *unit; /* of a value divided by `scale`: "MHz", "" of numbers of errors */
	double scale;
	bool is_counter; /* it only rises: what it rose by matters */
	bool is_constant; /* of the GPU: no time line shows it */
	bool is_of_process;
	bool is_bits; /* enum nvml_limit: it has no mean */
};

/* NULL: a metric of a newer version, or no measure */
const struct gpu_metric *gpu_metric__of(u64 metric);
/* A value in the metric's unit */
double gpu_metric__value(const struct gpu_metric *m, u64 value);
/* "power limit, temperature": the names of the bits that limit the clocks of a GPU that has work. Returns buf. */
char *gpu_limits__text(char *buf, size_t size, u64 limits);

#define GPU_METRICS_MAX 32

struct gpu_metric_sum {
	u64 n; /* values */
	double sum;
	u64 least, most, first, last;
};

struct gpu_metrics_device {
	u32 device; /* NVML's index */
	bool is_described;
	char model[65]; /* untrusted */
	u64 uuid_first, uuid_last;
	struct gpu_metric_sum sums[GPU_METRICS_MAX]; /* by enum nvml_metric */
	u64 readings; /* of the clock and what limits it, together */
	u64 limited; /* of these: something limited it */
	double limited_clock; /* sum of the clock in these, MHz */
	u64 by_limit[11]; /* by bit: readings in which it was among the limits */
	u64 clock, clock_time; /* of the reading that is being read */
};

struct gpu_user_key {
	u32 device, pid;
};

struct gpu_user {
	struct gpu_metric_sum memory, busy;
	u64 kinds; /* NVML_METRIC_PROCESS */
};

struct gpu_metrics {
	struct map devices; /* u32 -> struct gpu_metrics_device */
	struct map users; /* struct gpu_user_key -> struct gpu_user */
	struct map names; /* u32 pid -> char[128] */
	struct map own_devices; /* of processes with a shim, by UUID -> u32 number plus one */
};

/* Reads the selected time; q->pids does not count, as GPUs have several users. 0 or negative errno; always free it. */
int gpu_metrics__read(struct gpu_metrics *m, const struct query *q);
void gpu_metrics__free(struct gpu_metrics *m);
double gpu_metric_sum__mean(const struct gpu_metric_sum *s);
/* "python3.11 serve.py", "" if it is not known. Returns buf. */
const char *gpu_metrics__process(const struct gpu_metrics *m, const struct query *q, u32 pid, char *buf, size_t size);
/* Returns the number that a process with a shim gives NVML's device; -1: not known. */
s64 gpu_metrics__own_device(const struct gpu_metrics *m, u32 device, u32 pid);
/* Is it a process that the recording did not select? false if that is not known, without family proc. */
bool gpu_metrics__is_other(const struct query *q, u32 pid);
