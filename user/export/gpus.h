/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and names of GPUs, for exports of GPU work.
 *
 * A process numbers its devices itself: device 0 of one may be device 3 of another (CUDA_VISIBLE_DEVICES). So GPUs are
 * identified by UUID and numbered anew: each gets NVML's number (event nvml_device), or else the number that its first
 * process uses, if that is free.
 */
#pragma once

#include "model/gpu.h"
#include "model/stacks.h"
#include "util/map.h"

#define GPUS_MAX 1024 /* no machine has more; further GPUs share the last number */

struct gpu {
	bool is_used; /* a device has this number */
	bool is_described; /* a shim or NVML recorded its description */
	char model[65]; /* untrusted, "" if not known */
	u32 major, minor; /* compute capability; 0: not known */
	u64 memory; /* bytes; 0: not known */
	u64 uuid_first, uuid_last; /* 16 bytes; both 0: not known */
};

struct gpus {
	struct gpu *list; /* by number */
	u32 n;
	struct map by_uuid, by_device; /* -> u32 number plus one */
	struct map clock_errors; /* u32 pid -> u64 ns: largest error of the shim's clock */
	struct map streams; /* -> struct interval: last work that gpus__start got */
};

/* Returns 0 or negative errno. */
int gpus__load(struct gpus *g, struct trace *t);
void gpus__free(struct gpus *g);
/* Returns the number of a process's device (pid 0: of NVML's), GPUS_MAX without memory. */
u32 gpus__number(struct gpus *g, u32 pid, u32 device);
/* Returns "NVIDIA H100 80GB HBM3", with the number if several have this model, or "GPU 3" without a name. */
char *gpus__name(const struct gpus *g, u32 number, char *buf, size_t size);
/*
 * Returns when work began (ns), corrected by at most the error of the shim's clock: a stream runs its work in order, so
 * work begins after the end of the work before it. Call it once for each work, in the model's order.
 */
u64 gpus__start(struct gpus *g, const struct gpu_work *w);
/* Does the trace have any events of a device? */
bool gpus__traced(const struct trace *t);

/* "kernel", "memcpy", "memset", "graph" */
const char *gpu_work__name(const struct gpu_work *w);
/* Returns the title in viewers: the demangled kernel, or the operation. */
const char *gpu_work__title(struct gpu_model *m, const struct gpu_work *w);
/* Returns "pinned" etc. for enum gpu_memory_kind, "unknown" for other values. */
const char *gpu_memory__name(u32 kind);
/* Returns "HtoD" etc. for enum gpu_copy_kind, "unknown" for other values. */
const char *gpu_copy__name(u32 kind);
/* Returns the text for enum gil_held, NULL if not known. */
const char *gpu_launch__gil_state(const struct gpu_launch *l);

/* The launches emitted last: each node of a graph refers to the launch, which gpu_launches__first reports once. */
struct gpu_launches {
	u64 *emitted; /* numbers, by their low bits */
};
bool gpu_launches__first(struct gpu_launches *l, u64 number);
void gpu_launches__free(struct gpu_launches *l);
