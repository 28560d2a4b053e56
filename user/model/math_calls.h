/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of mathematics libraries by function, sizes and types: their time, their floating-point operations, and the
 * time of the kernels that they launched.
 */
#pragma once

#include "model/math_flops.h"
#include "model/math_peak.h"
#include "model/query.h"
#include "model/stats.h"
#include "util/map.h"

/* What the calls of a row have in common. Unused members are 0. */
struct math_key {
	u32 function; /* see math_calls__function() */
	u32 operation; /* enum math_operation */
	s64 m, n, k, batch;
	u32 transa, transb; /* enum cublas_transpose */
	u32 is_right;
	u32 a_type, b_type, c_type, compute; /* enum cublas_type and cublas_compute */
	u32 unit; /* enum math_unit */
	u32 products; /* of a graph of operations: how many of them are counted; the sizes are those of the first */
	u64 flop; /* of all of them; 0: as the sizes state */
};

struct math_group {
	struct stats time; /* of calls that returned */
	u64 untimed, errors;
	u64 flop; /* of calls that did not fail, saturated */
	bool has_flop;
	/* the kernels that they launched, if their times are known */
	u64 kernels, device_ns;
	u64 device_flop; /* of calls whose kernels are known */
	double possible; /* FLOP that their devices could have done in that time */
	bool has_tf32; /* a device has tensor cores for TF32 */
	bool has_unknown_peak; /* some device's peak is not known, so `possible` is of no use */
};

struct math_function {
	struct stats time;
	u64 untimed, errors, flop;
	u64 kernels, device_ns;
	bool has_flop;
};

struct math_calls {
	const struct query *args;
	struct map groups; /* struct math_key -> struct math_group */
	struct math_group others; /* calls of sizes beyond a limit */
	struct map functions; /* u32 number of the function -> struct math_function */
	struct map names; /* texts */
	struct map threads; /* struct math_thread_key -> struct math_launches */
	struct gpu_model *gpu;
	struct stats_pool pool;
	u64 calls, errors, total; /* ns */
	u64 flop; /* saturated */
	u64 kernels, launches, launches_dropped;
	bool has_device; /* kernels with device times were recorded */
};

/* 0 or negative errno; call math_calls__free in any case. */
int math_calls__read(struct math_calls *a, const struct query *args);
void math_calls__free(struct math_calls *a);
const char *math_calls__function(const struct math_calls *a, u32 function);
/* "NT 64 x 32 x 16, batch 8" */
const char *math_key__sizes(const struct math_key *k, char *buf, size_t size);
/* "R_16F to R_32F"; "R_32F as TF32" */
const char *math_key__types(const struct math_key *k, char *buf, size_t size);
