/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of devices, and pinned memory of the host, by process: live bytes, the peak, and the code that allocated
 * it. Memory allocated before the trace is not known: all figures are of allocations in the trace.
 */
#pragma once

#include "model/gpu.h"
#include "model/query.h"
#include "util/map.h"

enum memory_where { MEMORY_ON_DEVICE, MEMORY_PINNED, MEMORY_MANAGED, MEMORY_ELSEWHERE };

struct memory_key {
	u32 pid, device; /* GPU_NO_DEVICE: not known, or the host's */
	u32 where; /* enum memory_where */
};

struct memory_sum {
	u32 index; /* in sums */
	u64 live, live_n; /* at the end, once all is read */
	u64 peak, peak_time; /* ns: when the peak was first reached */
	u64 peak_change; /* number of changes up to the peak */
	u64 changes;
	u64 allocations, releases, bytes; /* bytes: of all allocations together */
	u64 largest;
	bool host_time; /* recorded by uprobes alone, at least in part */
};

struct memory_block_key {
	u64 address;
	u32 pid, unused;
};

struct memory_block {
	u64 bytes, time;
	u32 sum; /* index */
	u32 stack, tid;
	bool live;
};

struct memory_site_key {
	u32 sum; /* index */
	u32 stack; /* 0: not known, then tid is used */
	u32 tid;
};

struct memory_site {
	u64 peak, peak_n; /* live at the sum's peak */
	u64 live, live_n; /* at the end */
	u64 bytes, allocations; /* in all */
	u64 oldest; /* when the oldest live block was allocated */
};

struct memory_pool_key {
	u64 pool;
	u32 pid, device;
};

struct memory_pool {
	u64 size, used; /* largest values */
};

struct memory_sums {
	const struct query *args;
	struct gpu_model *model;
	struct gpu_coverage coverage;
	struct map sums; /* struct memory_key -> struct memory_sum */
	struct map blocks; /* struct memory_block_key -> struct memory_block */
	struct map sites; /* struct memory_site_key -> struct memory_site */
	struct map pools; /* struct memory_pool_key -> struct memory_pool */
	u64 unseen; /* releases of memory whose allocation was not recorded */
	u64 failed; /* calls for memory that returned an error */
	bool at_peaks; /* the second reading */
};

/* 0 or negative errno; free in any case. */
int memory_sums__read(struct memory_sums *m, const struct query *args);
void memory_sums__free(struct memory_sums *m);
