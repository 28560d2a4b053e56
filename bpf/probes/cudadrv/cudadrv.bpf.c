// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The family's options, and the calls that the driver has in common with the runtime. */
#include "cudadrv.bpf.h"

OPTION(cudadrv, all, "also calls that frameworks make many times per operator and that carry no information");
OPTION(cudadrv, nested, "also driver calls that are made within calls of the runtime or the driver");
OPTION(cudadrv, stacks,
       "Python stack and GIL at launches, copies, sets, allocations and waits that are calls of the driver");

#include "probes/cuda/cuda_calls.bpf.h"

/* (f, grid x, y, z, block x, y, z, sharedMemBytes, stream, ..): from the seventh on they are on the stack. */
static __always_inline void launch_by_args(struct cudadrv_launch *e, const struct args *a)
{
	u64 s[3] = {};

	e->function = a->a1;
	bpf_probe_read_user(s, sizeof(s), (const void *)(a->sp + 8));
	e->grid_x = a->a2;
	e->grid_y = a->a3;
	e->grid_z = a->a4;
	e->block_x = a->a5;
	e->block_y = a->a6;
	e->block_z = s[0];
	e->shared_memory = (u32)s[1];
	e->stream = s[2];
}

/*
 * All functions that no other program names. libcuda's functions with other names, such as cudbgGetAPI, are not part
 * of the API.
 */
CALL_IF_ALL(call, "cu[A-Z]*")
{
}
