/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast NCCL's operations were on the device, by the definitions of nccl-tests (PERFORMANCE.md): the algorithm
 * bandwidth is the size of an operation divided by its time, the bus bandwidth is that times a factor of the operation
 * and the number of ranks, so that it can be compared with the speed of the hardware. The size is that of the whole
 * buffer: of operations whose count is the part of one rank, that part times the number of ranks.
 */
#pragma once

#include "model/nccl_kernels.h"

#define NCCL_OPERATIONS_DIFFER 0xffffffffu

struct nccl_speed_key {
	u32 function; /* for nccl_calls__function_name(); NCCL_OPERATIONS_DIFFER: a group of different functions */
	s32 ranks; /* 0: not known */
	u64 bytes; /* of the call, or the sum of those that were fused */
	u32 fused; /* calls that a kernel executed */
	char algorithm[16], protocol[8];
	u32 unused;
};

struct nccl_speed {
	u64 kernels, ns, shortest;
	double size; /* bytes of one kernel as nccl-tests defines the size; 0: not known */
	double factor; /* of the bus bandwidth; 0: not known */
};

/* Adds to a table (struct nccl_speed_key -> struct nccl_speed). 0 or -ENOMEM. */
int nccl_bandwidth__sum(struct map *speeds, const struct nccl_calls *c, const struct nccl_kernels *k);
