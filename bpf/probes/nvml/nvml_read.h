/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The child's part of the family: reads NVML. nvml_read.c has the devices, nvml_values.c a reading of one. */
#pragma once

#include "nvml.h"
#include "nvml_api.h"

#include "record/family.h"

#define NVML_DEVICES_MAX 64
#define NVML_QUERIES_MAX 32

struct nvml_gpu {
	nvmlDevice_t handle;
	u32 device;
	bool is_lost;
	u32 unsupported; /* bits: queries that it does not answer, which are not made again */
	u64 seen[3]; /* us since 1970: the newest sample of each history */
	u64 seen_processes; /* the same of processes' use */
};

struct nvml_reader {
	struct nvml_functions f;
	struct meter_child *child;
	struct nvml_gpu gpus[NVML_DEVICES_MAX];
	u32 n, n_lost;
	/* of the reading that is made */
	u64 now; /* CLOCK_MONOTONIC ns */
	u64 realtime; /* the same moment, us since 1970 */
};

/* "NVML_ERROR_GPU_IS_LOST", or "error 1234" */
const char *nvml_error__name(nvmlReturn_t error, char *buf, size_t len);
/* Makes a query, if the driver has this function: NVML_CALL(r, f, power, g->handle, &n) */
#define NVML_CALL(reader, member, ...)                                                                        \
	({                                                                                                    \
		nvmlReturn_t nvml_result = NVML_ERROR_FUNCTION_NOT_FOUND;                                     \
		if ((reader)->f.member) {                                                                     \
			meter__begin_query((reader)->child, nvml_function__name(NVML_INDEX_##member), false); \
			nvml_result = (reader)->f.member(__VA_ARGS__);                                        \
			meter__end_query((reader)->child);                                                    \
		}                                                                                             \
		nvml_result;                                                                                  \
	})
#define NVML_INDEX(member, function, parameters) NVML_INDEX_##member,
enum nvml_function { NVML_FUNCTIONS(NVML_INDEX) NVML_FUNCTION_COUNT };
const char *nvml_function__name(enum nvml_function f);

void nvml_values__emit(struct nvml_reader *r, const struct nvml_gpu *g, enum nvml_metric metric, u64 value);
/* Reads all values of a GPU. Returns NVML_ERROR_GPU_IS_LOST, or NVML_SUCCESS. */
nvmlReturn_t nvml_values__read(struct nvml_reader *r, struct nvml_gpu *g);
int nvml__open(struct meter_child *c, void *library, void **state);
int nvml__read(struct meter_child *c, void *state);
/* nvml_history.c: samples that the driver made since the last reading */
nvmlReturn_t nvml_history__read(struct nvml_reader *r, struct nvml_gpu *g);
/* nvml_users.c: the processes that use the GPU */
nvmlReturn_t nvml_users__read(struct nvml_reader *r, struct nvml_gpu *g);
/* Returns the CLOCK_MONOTONIC time of a time in us since 1970, at most that of this reading. */
u64 nvml_reader__time(const struct nvml_reader *r, u64 us);
