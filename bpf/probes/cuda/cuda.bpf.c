// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The family's options, and the calls that the runtime has in common with the driver. */
#include "cuda.bpf.h"

OPTION(cuda, all, "also calls that frameworks make many times per operator and that carry no information");
OPTION(cuda, stacks, "Python stack and GIL at launches, copies, sets, allocations and waits; the driver's calls too");

#include "cuda_calls.bpf.h"

/* cudaLaunchKernel(func, gridDim, blockDim, args, sharedMem, stream): a dim3 by value takes two registers. */
static __always_inline void launch_by_args(struct cuda_launch *e, const struct args *a)
{
	u64 s[2] = {};

	e->function = a->a1;
	e->grid_x = (u32)a->a2;
	e->grid_y = a->a2 >> 32;
	e->grid_z = (u32)a->a3;
	e->block_x = (u32)a->a4;
	e->block_y = a->a4 >> 32;
	e->block_z = (u32)a->a5;
	bpf_probe_read_user(s, sizeof(s), (const void *)(a->sp + 8));
	e->shared_memory = s[0];
	e->stream = s[1];
}

/*
 * All other functions, by globs. The globs must not match a function that another program names, because the call
 * would be recorded twice, nor cudaGetErrorName and the like, which do not return a cudaError_t.
 * tests/probes/cuda/test_names.py checks both.
 */
CALL_IF_ALL(call, "cudaArray*,cudaBind*,cudaChoose*,cudaCreate[ST]*,cudaCtx*,cudaDestroy*,"
		  "cudaDevResource*,cudaDevSm*,cudaDevice[!S]*,cudaDeviceSet*,cudaDriver*,cudaEGL*,"
		  "cudaExecutionCtx[!S]*,cudaExecutionCtxStream*,cudaExternal*,cudaFunc*,cudaGL*,"
		  "cudaGet[!E]*,cudaGraphAdd*,cudaGraphChild*,cudaGraphConditional*,cudaGraphDebug*,"
		  "cudaGraphDestroyNode,cudaGraphEvent*,cudaGraphExec[!DU]*,cudaGraphExternal*,"
		  "cudaGraphGet*,cudaGraphHost*,cudaGraphKernel*,cudaGraphMem*,cudaGraphNode*,"
		  "cudaGraphRe*,cudaGraphics*,cudaGreen*,cudaHostGet*,cudaImport*,cudaInit*,cudaIpc*,"
		  "cudaKernel*,cudaLibrary*,cudaLogs*,cudaMemAdvise*,cudaMemDiscard*,cudaMemGet*,"
		  "cudaMemPool[!CDT]*,cudaMemPrefetchBatch*,cudaMemRange*,cudaMemSet*,cudaMipmapped*,"
		  "cudaOccupancy*,cudaPeek*,cudaPointer*,cudaProfiler*,cudaRuntime*,cudaSet*,"
		  "cudaSignal*,cudaStreamAttach*,cudaStreamCopy*,cudaStreamGet*,cudaStreamIs*,"
		  "cudaStreamQuery*,cudaStreamSet*,cudaStreamUpdate*,cudaSubgrid*,cudaThread[!S]*,"
		  "cudaThreadSet*,cudaUnbind*,cudaUserObject*,cudaVDPAU*,cudaWait*")
{
}
