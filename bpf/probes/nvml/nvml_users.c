// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes that use a GPU: their memory on it, and the time for which their kernels ran. */
#include "nvml_read.h"

#define PROCESSES_MAX 1024
#define NOT_AVAILABLE (~0ULL) /* NVML_VALUE_NOT_AVAILABLE */

/* Bits of NVML_METRIC_PROCESS */
enum { COMPUTES = 1, DRAWS = 2 };

struct users {
	struct {
		u32 pid, kinds;
		u64 memory;
	} list[PROCESSES_MAX];
	u32 n;
};

static void add_user(struct users *u, const nvmlProcessInfo_t *p, u32 kind)
{
	u32 i = 0;

	while (i < u->n && u->list[i].pid != p->pid)
		i++;
	if (i == PROCESSES_MAX || !p->pid)
		return;
	if (i == u->n) {
		u->list[u->n].pid = p->pid;
		u->list[u->n].kinds = 0;
		u->list[u->n++].memory = NOT_AVAILABLE;
	}
	u->list[i].kinds |= kind;
	/* both lists have the memory of the whole process */
	if (p->usedGpuMemory != NOT_AVAILABLE)
		u->list[i].memory = p->usedGpuMemory;
}

static void emit(struct nvml_reader *r, const struct nvml_gpu *g, u64 time, u32 pid, enum nvml_metric metric, u64 value)
{
	const struct nvml_value v = {
		.event = { .time = time, .id = ID_nvml_value },
		.value = value,
		.metric = metric,
		.device = g->device,
		.process = pid,
	};

	meter__emit(r->child, &v, sizeof(v));
}

static nvmlReturn_t read_contexts(struct nvml_reader *r, const struct nvml_gpu *g, struct users *u)
{
	static nvmlProcessInfo_t infos[PROCESSES_MAX];
	unsigned int n = PROCESSES_MAX;
	nvmlReturn_t err = NVML_CALL(r, compute, g->handle, &n, infos);

	for (u32 i = 0; err == NVML_SUCCESS && i < n && i < PROCESSES_MAX; i++)
		add_user(u, &infos[i], COMPUTES);
	if (err == NVML_ERROR_GPU_IS_LOST)
		return err;
	n = PROCESSES_MAX;
	err = NVML_CALL(r, graphics, g->handle, &n, infos);
	for (u32 i = 0; err == NVML_SUCCESS && i < n && i < PROCESSES_MAX; i++)
		add_user(u, &infos[i], DRAWS);
	return err;
}

static nvmlReturn_t read_use(struct nvml_reader *r, struct nvml_gpu *g)
{
	static nvmlProcessUtilizationSample_t samples[PROCESSES_MAX];
	unsigned int n = PROCESSES_MAX;
	u64 seen = g->seen_processes;
	nvmlReturn_t err = NVML_CALL(r, processes, g->handle, samples, &n, seen);

	for (u32 i = 0; err == NVML_SUCCESS && i < n && i < PROCESSES_MAX; i++) {
		const nvmlProcessUtilizationSample_t *s = &samples[i];
		u64 time = nvml_reader__time(r, s->timeStamp);

		if (!s->pid || s->timeStamp <= seen || s->smUtil > 100 || s->memUtil > 100)
			continue;
		emit(r, g, time, s->pid, NVML_METRIC_PROCESS_BUSY, s->smUtil);
		emit(r, g, time, s->pid, NVML_METRIC_PROCESS_MEMORY_BUSY, s->memUtil);
		if (s->timeStamp > g->seen_processes)
			g->seen_processes = s->timeStamp;
	}
	return err;
}

nvmlReturn_t nvml_users__read(struct nvml_reader *r, struct nvml_gpu *g)
{
	static struct users u;
	nvmlReturn_t err;

	u.n = 0;
	err = read_contexts(r, g, &u);
	for (u32 i = 0; i < u.n; i++) {
		emit(r, g, r->now, u.list[i].pid, NVML_METRIC_PROCESS, u.list[i].kinds);
		if (u.list[i].memory != NOT_AVAILABLE)
			emit(r, g, r->now, u.list[i].pid, NVML_METRIC_PROCESS_MEMORY, u.list[i].memory);
	}
	return err == NVML_ERROR_GPU_IS_LOST ? err : read_use(r, g);
}
