// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One reading of a GPU. A query that the GPU does not support, or that the process has no permission for, has no value:
 * nothing is written for it, and it is not made again.
 */
#include "nvml_read.h"

#include <string.h>

#define PCIE_PERIOD 200000000ULL /* ns: each of the two queries takes 20 ms */

struct answer {
	u32 n;
	struct {
		enum nvml_metric metric;
		u64 value;
	} values[8];
};

static void add(struct answer *a, enum nvml_metric metric, u64 value)
{
	a->values[a->n].metric = metric;
	a->values[a->n++].value = value;
}

/* Queries that return one number */
#define NUMBER_QUERY(name, type, metric, member, ...)                                               \
	static nvmlReturn_t name(struct nvml_reader *r, const struct nvml_gpu *g, struct answer *a) \
	{                                                                                           \
		type value = 0;                                                                     \
		nvmlReturn_t err = NVML_CALL(r, member, g->handle, ##__VA_ARGS__, &value);          \
                                                                                                    \
		add(a, metric, value);                                                              \
		return err;                                                                         \
	}
#define UNSIGNED_QUERY(name, ...) NUMBER_QUERY(name, unsigned int, __VA_ARGS__)
#define LONG_QUERY(name, ...)	  NUMBER_QUERY(name, unsigned long long, __VA_ARGS__)

UNSIGNED_QUERY(sm_clock, NVML_METRIC_SM_CLOCK, clock, NVML_CLOCK_SM)
UNSIGNED_QUERY(sm_clock_max, NVML_METRIC_SM_CLOCK_MAX, max_clock, NVML_CLOCK_SM)
UNSIGNED_QUERY(memory_clock, NVML_METRIC_MEMORY_CLOCK, clock, NVML_CLOCK_MEM)
UNSIGNED_QUERY(memory_clock_max, NVML_METRIC_MEMORY_CLOCK_MAX, max_clock, NVML_CLOCK_MEM)
LONG_QUERY(clock_limits, NVML_METRIC_CLOCK_LIMITS, limits)
UNSIGNED_QUERY(power_limit, NVML_METRIC_POWER_LIMIT, power_limit)
UNSIGNED_QUERY(temperature, NVML_METRIC_TEMPERATURE, temperature, NVML_TEMPERATURE_GPU)
UNSIGNED_QUERY(slowdown, NVML_METRIC_TEMPERATURE_SLOWDOWN, threshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
UNSIGNED_QUERY(pcie_sent, NVML_METRIC_PCIE_SENT, pcie, NVML_PCIE_UTIL_TX_BYTES)
UNSIGNED_QUERY(pcie_received, NVML_METRIC_PCIE_RECEIVED, pcie, NVML_PCIE_UTIL_RX_BYTES)
UNSIGNED_QUERY(pcie_replays, NVML_METRIC_PCIE_REPLAYS, replays)
LONG_QUERY(ecc_corrected, NVML_METRIC_ECC_CORRECTED, ecc, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC)
LONG_QUERY(ecc_uncorrected, NVML_METRIC_ECC_UNCORRECTED, ecc, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC)

static nvmlReturn_t memory(struct nvml_reader *r, const struct nvml_gpu *g, struct answer *a)
{
	nvmlMemory_t m = {};
	nvmlReturn_t err = NVML_CALL(r, memory, g->handle, &m);

	add(a, NVML_METRIC_MEMORY_USED, m.used);
	add(a, NVML_METRIC_MEMORY_TOTAL, m.total);
	return err;
}

static u64 number_of(const nvmlFieldValue_t *f)
{
	return f->valueType == NVML_VALUE_TYPE_UNSIGNED_INT  ? f->value.uiVal :
	       f->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG ? f->value.ulVal :
							       f->value.ullVal;
}

/* Each field has a result of its own. */
static nvmlReturn_t nvlink(struct nvml_reader *r, const struct nvml_gpu *g, struct answer *a)
{
	static const struct {
		u32 field;
		enum nvml_metric metric;
		u32 scope;
	} fields[] = {
		/* of all links */
		{ NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_METRIC_NVLINK_SENT, ~0U },
		{ NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_METRIC_NVLINK_RECEIVED, ~0U },
		{ NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, NVML_METRIC_NVLINK_CRC_ERRORS, 0 },
		{ NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, NVML_METRIC_NVLINK_REPLAYS, 0 },
		{ NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, NVML_METRIC_NVLINK_RECOVERIES, 0 },
	};
	enum { N = sizeof(fields) / sizeof(fields[0]) };
	nvmlFieldValue_t values[N] = {};
	nvmlReturn_t err;

	for (u32 i = 0; i < N; i++) {
		values[i].fieldId = fields[i].field;
		values[i].scopeId = fields[i].scope;
	}
	err = NVML_CALL(r, fields, g->handle, N, values);
	for (u32 i = 0; i < N && err == NVML_SUCCESS; i++)
		if (values[i].nvmlReturn == NVML_SUCCESS)
			add(a, fields[i].metric, number_of(&values[i]));
	return err == NVML_SUCCESS && !a->n ? NVML_ERROR_NOT_SUPPORTED : err;
}

/* The SM's clock comes before what limits it: readers take both together. */
static const struct query {
	nvmlReturn_t (*make)(struct nvml_reader *r, const struct nvml_gpu *g, struct answer *a);
	bool is_constant; /* read once */
	bool is_slow;
} queries[] = {
	{ sm_clock_max, true, false },	{ memory_clock_max, true, false }, { slowdown, true, false },
	{ power_limit, false, false },	{ sm_clock, false, false },	   { clock_limits, false, false },
	{ memory_clock, false, false }, { memory, false, false },	   { temperature, false, false },
	{ pcie_sent, false, true },	{ pcie_received, false, true },	   { pcie_replays, false, false },
	{ nvlink, false, false },	{ ecc_corrected, false, false },   { ecc_uncorrected, false, false },
};
_Static_assert(sizeof(queries) / sizeof(queries[0]) <= NVML_QUERIES_MAX, "bits of nvml_gpu.unsupported");

void nvml_values__emit(struct nvml_reader *r, const struct nvml_gpu *g, enum nvml_metric metric, u64 value)
{
	const struct nvml_value v = {
		.event = { .time = r->now, .id = ID_nvml_value },
		.value = value,
		.metric = metric,
		.device = g->device,
	};

	meter__emit(r->child, &v, sizeof(v));
}

nvmlReturn_t nvml_values__read(struct nvml_reader *r, struct nvml_gpu *g)
{
	nvmlReturn_t err = NVML_SUCCESS;

	for (u32 i = 0; i < sizeof(queries) / sizeof(queries[0]) && err != NVML_ERROR_GPU_IS_LOST; i++) {
		struct answer a = {};

		if ((g->unsupported >> i & 1) || (queries[i].is_slow && meter__period(r->child) < PCIE_PERIOD))
			continue;
		err = queries[i].make(r, g, &a);
		for (u32 k = 0; k < a.n && err == NVML_SUCCESS; k++)
			nvml_values__emit(r, g, a.values[k].metric, a.values[k].value);
		if (queries[i].is_constant || err != NVML_SUCCESS)
			g->unsupported |= 1U << i;
	}
	return err == NVML_ERROR_GPU_IS_LOST ? err : NVML_SUCCESS;
}
