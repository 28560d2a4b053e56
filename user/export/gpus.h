/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by exports of GPU work: numbers of GPUs, names.
 *
 * A process numbers its devices itself: device 0 of one may be device 3 of another (CUDA_VISIBLE_DEVICES). So GPUs
 * are identified by their UUIDs and numbered anew, with their first process's number where that is free.
 */
#ifndef SONDE_EXPORT_GPUS_H
#define SONDE_EXPORT_GPUS_H

#include "model/gpu.h"
#include "model/stacks.h"
#include "util/map.h"

#define GPUS_MAX 1024 /* more come from no machine: they share the last one's number */

struct gpu {
	bool taken; /* some device has this number */
	bool known; /* its process's shim recorded it */
	char model[65]; /* untrusted, "" if not known */
	u32 major, minor; /* compute capability; 0: not known */
	u64 memory; /* bytes; 0: not known */
	u64 uuid_first, uuid_last; /* its bytes; both 0: not known */
};

struct gpus {
	struct gpu *list; /* by number */
	u32 n;
	struct map by_uuid, by_device; /* -> u32 number plus one */
	struct map clock_errors; /* u32 pid -> u64 ns, the largest of its shim's clock */
	struct map streams; /* -> struct interval: the work that gpus__start saw last */
};

/* 0 or -ENOMEM and other negative errno of reading */
int gpus__load(struct gpus *g, struct trace *t);
void gpus__free(struct gpus *g);
/* Of a process's device. GPUS_MAX: no memory. */
u32 gpus__number(struct gpus *g, u32 pid, u32 device);
/* "NVIDIA H100 80GB HBM3", of several equal ones with their number, "GPU 3" if there is no name. */
char *gpus__name(const struct gpus *g, u32 number, char *buf, size_t size);
/*
 * When work began, ns: a stream does one thing after the other, so work that seems to begin before the work ahead of it in
 * its stream ended begins there, if that is within the error of the clock. Call it once for each, in the order of the model.
 */
u64 gpus__start(struct gpus *g, const struct gpu_work *w);
/* Does the trace have any events of a device? */
bool gpus__traced(const struct trace *t);

/* "kernel", "memcpy", "memset", "graph" */
const char *gpu_work__name(const struct gpu_work *w);
/* What a viewer calls it: the demangled kernel, else the operation. */
const char *gpu_work__title(struct gpu_model *m, const struct gpu_work *w);
/* "pinned" of enum gpu_memory_kind; "unknown" */
const char *gpu_memory__name(u32 kind);
/* "HtoD" of enum gpu_copy_kind; "unknown" */
const char *gpu_copy__name(u32 kind);
/* Of enum gil_held; NULL: not known */
const char *gpu_launch__gil_state(const struct gpu_launch *l);

/* The launches that were emitted last. A launch may come back with each of its graph's nodes: true the first time. */
struct gpu_launches {
	u64 *emitted; /* numbers, by their low bits */
};
bool gpu_launches__first(struct gpu_launches *l, u64 number);
void gpu_launches__free(struct gpu_launches *l);

#endif
