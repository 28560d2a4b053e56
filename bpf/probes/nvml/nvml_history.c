// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Use and power: the driver samples them itself, several times a second, and keeps the last samples, so that a reading
 * gets all samples since the one before. A GPU without this history, or divided by MIG, is asked for the present value.
 */
#include "nvml_read.h"

#define SAMPLES_MAX 256

enum history { HISTORY_BUSY, HISTORY_MEMORY_BUSY, HISTORY_POWER, HISTORIES };
_Static_assert(HISTORIES == sizeof(((struct nvml_gpu *)0)->seen) / sizeof(u64), "nvml_gpu.seen");

static const struct {
	nvmlSamplingType_t type;
	enum nvml_metric metric;
} histories[HISTORIES] = {
	[HISTORY_BUSY] = { NVML_GPU_UTILIZATION_SAMPLES, NVML_METRIC_BUSY },
	[HISTORY_MEMORY_BUSY] = { NVML_MEMORY_UTILIZATION_SAMPLES, NVML_METRIC_MEMORY_BUSY },
	[HISTORY_POWER] = { NVML_TOTAL_POWER_SAMPLES, NVML_METRIC_POWER },
};

#define BIT_OF(history) (1U << (NVML_QUERIES_MAX - 1 - (history)))

static nvmlReturn_t read_samples(struct nvml_reader *r, struct nvml_gpu *g, enum history h)
{
	static nvmlSample_t samples[SAMPLES_MAX];
	unsigned int n = SAMPLES_MAX;
	nvmlValueType_t type = NVML_VALUE_TYPE_UNSIGNED_INT;
	u64 seen = g->seen[h];
	nvmlReturn_t err = NVML_CALL(r, samples, g->handle, histories[h].type, seen, &type, &n, samples);

	for (u32 i = 0; err == NVML_SUCCESS && i < n && i < SAMPLES_MAX; i++) {
		struct nvml_value v = {
			.event = { .time = nvml_reader__time(r, samples[i].timeStamp), .id = ID_nvml_value },
			.value = samples[i].sampleValue.uiVal,
			.metric = histories[h].metric,
			.device = g->device,
		};

		if (samples[i].timeStamp <= seen)
			continue;
		meter__emit(r->child, &v, sizeof(v));
		if (samples[i].timeStamp > g->seen[h])
			g->seen[h] = samples[i].timeStamp;
	}
	/* there was none since the last reading */
	return err == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : err;
}

static nvmlReturn_t read_use(struct nvml_reader *r, const struct nvml_gpu *g)
{
	nvmlUtilization_t use = {};
	nvmlReturn_t err = NVML_CALL(r, utilization, g->handle, &use);

	if (err == NVML_SUCCESS && g->unsupported & BIT_OF(HISTORY_BUSY))
		nvml_values__emit(r, g, NVML_METRIC_BUSY, use.gpu);
	if (err == NVML_SUCCESS && g->unsupported & BIT_OF(HISTORY_MEMORY_BUSY))
		nvml_values__emit(r, g, NVML_METRIC_MEMORY_BUSY, use.memory);
	return err;
}

static nvmlReturn_t read_power(struct nvml_reader *r, const struct nvml_gpu *g)
{
	unsigned int power = 0;
	nvmlReturn_t err = NVML_CALL(r, power, g->handle, &power);

	if (err == NVML_SUCCESS)
		nvml_values__emit(r, g, NVML_METRIC_POWER, power);
	return err;
}

nvmlReturn_t nvml_history__read(struct nvml_reader *r, struct nvml_gpu *g)
{
	nvmlReturn_t err = NVML_SUCCESS;

	for (enum history h = 0; h < HISTORIES && err != NVML_ERROR_GPU_IS_LOST; h++) {
		if (g->unsupported & BIT_OF(h))
			continue;
		err = read_samples(r, g, h);
		if (err != NVML_SUCCESS)
			g->unsupported |= BIT_OF(h);
	}
	if (err != NVML_ERROR_GPU_IS_LOST && g->unsupported & (BIT_OF(HISTORY_BUSY) | BIT_OF(HISTORY_MEMORY_BUSY)))
		err = read_use(r, g);
	if (err != NVML_ERROR_GPU_IS_LOST && g->unsupported & BIT_OF(HISTORY_POWER))
		err = read_power(r, g);
	return err == NVML_ERROR_GPU_IS_LOST ? err : NVML_SUCCESS;
}
