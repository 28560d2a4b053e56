/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums copies and sets by operation, for cuda-mem-time and cuda-mem-size. */
#pragma once

#include "report/gpu/cuda_work.h"

struct cuda_mem_group {
	const char *operation;
	struct stats time, size;
};

struct cuda_mem {
	struct cuda_work work;
	struct map device; /* const char *operation -> struct cuda_mem_group */
	struct map host; /* the same for processes without device times */
	u64 total, host_total, bytes; /* total, host_total: ns */
};

/* Returns 0 or negative errno; call cuda_mem__free in any case. */
int cuda_mem__read(struct cuda_mem *c, const struct query *args);
void cuda_mem__free(struct cuda_mem *c);
/* Returns bytes per second, 0 if not known. */
static inline double cuda_mem__bandwidth(u64 bytes, u64 ns)
{
	return ns ? (double)bytes * 1e9 / (double)ns : 0;
}
