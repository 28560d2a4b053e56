/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The device kernels of NCCL's operations. A kernel belongs to the call that launched it, in the same thread; between
 * ncclGroupStart and ncclGroupEnd calls only store operations, and ncclGroupEnd launches them. If it launches as many
 * kernels as the group has operations, they are in the same order. Otherwise NCCL fused operations, and all kernels of
 * the group count as one that executed all of its operations.
 */
#pragma once

#include "model/nccl_calls.h"

struct nccl_kernel {
	u64 start, end; /* on the device, CLOCK_MONOTONIC ns */
	u64 launch; /* when the host launched it */
	u32 pid, tid;
	u32 first, n; /* its operations: nccl_calls.ops[first] and those after it; n 0: not joined */
	/*
	 * What the kernel's name says, "RING" and "LL"; "": nothing. From NCCL 2.19 on one kernel contains the code of
	 * several protocols, and has the name of one.
	 */
	char algorithm[16], protocol[8];
};

struct nccl_kernels {
	struct nccl_kernel *list; /* by thread and launch */
	u32 n;
	u32 *of_op; /* by operation: index in list plus one; 0: none */
	u64 unjoined; /* kernels of NCCL that no recorded call launched */
	bool is_complete; /* all kernels that had ended were recorded */
	struct map devices; /* u32 pid -> u8: processes with kernels of NCCL */
};

/* calls must outlive it. 0 or negative errno; nccl_kernels__free in any case. */
int nccl_kernels__read(struct nccl_kernels *k, const struct nccl_calls *calls, const struct query *q);
void nccl_kernels__free(struct nccl_kernels *k);
/* Returns the kernel that executed the operation with this index; NULL: none was recorded. */
const struct nccl_kernel *nccl_kernels__of(const struct nccl_kernels *k, u32 op);
