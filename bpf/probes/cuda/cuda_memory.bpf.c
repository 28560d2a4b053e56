// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocation, freeing, pools, pinning and prefetching. */
#include "core/sonde.bpf.h"
#include "cuda.h"
#include "cuda_calls.bpf.h"
#include "cuda_stack.bpf.h"

struct channel_desc { /* cudaChannelFormatDesc, driver_types.h */
	s32 bits[4];
	s32 kind;
};

enum {
	ALLOC_3D = ALLOC_COMMON,
	ALLOC_ARRAY,
	ALLOC_3D_ARRAY,
	ALLOC_MIPMAPPED,
};

/*
 * The size of an array is given in elements, whose size the descriptor has. A height or depth of 0 means that the
 * array has fewer dimensions.
 */
static __always_inline u64 array_bytes(u64 desc, u64 width, u64 height, u64 depth)
{
	struct channel_desc d = {};

	bpf_probe_read_user(&d, sizeof(d), (const void *)desc);
	return (u64)(u32)(d.bits[0] + d.bits[1] + d.bits[2] + d.bits[3]) / 8 * width * (height ? height : 1) *
	       (depth ? depth : 1);
}

static __always_inline void alloc_return(struct cuda_alloc *e)
{
	e->address = args__out(&e->call, SPAN_OUT(e));
}

/* All begin with (address *, ...); a cudaExtent that is passed by value is on the stack. */
CUDA_CALL_EXIT(cuda_alloc,
	       "cudaMalloc;"
	       "cudaMallocHost;"
	       "cudaHostAlloc;"
	       "cudaMallocManaged;"
	       "cudaMallocAsync,cudaMallocAsync_ptsz;"
	       "cudaMallocFromPoolAsync,cudaMallocFromPoolAsync_ptsz;"
	       "cudaMallocPitch;"
	       "cudaMalloc3D;"
	       "cudaMallocArray;"
	       "cudaMalloc3DArray;"
	       "cudaMallocMipmappedArray",
	       cuda_alloc, alloc_return)
{
	struct args a = args__read(ctx);
	u64 s[3] = {};

	SPAN_OUT(e) = a.a1;
	e->bytes = a.a2;
	switch (group) {
		CUDA_ALLOC_CASES(e, a);
	case ALLOC_ARRAY: /* array *, desc, width, height, flags */
		e->memory = CUDA_MEMORY_ARRAY;
		e->bytes = array_bytes(a.a2, a.a3, a.a4, 1);
		e->api_flags = a.a5;
		break;
	default: /* ALLOC_3D: cudaPitchedPtr *, extent; the arrays: array *, desc, extent, [levels,] flags */
		bpf_probe_read_user(s, sizeof(s), (const void *)(a.sp + 8));
		if (group == ALLOC_3D) {
			e->bytes = s[0] * s[1] * s[2];
			break;
		}
		e->memory = CUDA_MEMORY_ARRAY;
		e->bytes = array_bytes(a.a2, s[0], s[1], s[2]);
		e->api_flags = group == ALLOC_MIPMAPPED ? a.a4 : a.a3;
	}
}

/* cudaFree*(address), cudaFreeAsync(address, stream) */
CUDA_CALL(cuda_free,
	  "cudaFree;"
	  "cudaFreeHost;"
	  "cudaFreeAsync,cudaFreeAsync_ptsz;"
	  "cudaFreeArray,cudaFreeMipmappedArray",
	  cuda_free)
{
	u64 stream = ARG2(ctx);

	barrier_var(stream);
	e->address = ARG1(ctx);
	e->stream = group == 2 ? stream : 0;
	e->memory = group == 0 ? CUDA_MEMORY_DEVICE :
		    group == 1 ? CUDA_MEMORY_HOST :
		    group == 2 ? CUDA_MEMORY_POOL :
				 CUDA_MEMORY_ARRAY;
}

/* cudaHostRegister(address, size, flags), cudaHostUnregister(address) */
SPAN(cuda_host_register, "libcudart.so:cudaHostRegister;cudaHostUnregister", cuda_host_register)
{
	CUDA_HOST_REGISTER(ctx, e, group);
}

CUDA_HANDLE_RETURN(pool_return, cuda_pool, pool)

/* cudaMemPoolDestroy(pool), cudaMemPoolTrimTo(pool, bytes), cudaMemPoolCreate(pool *, props) */
SPAN_EXIT(cuda_pool, "libcudart.so:cudaMemPoolDestroy;cudaMemPoolTrimTo;cudaMemPoolCreate", cuda_pool, pool_return)
{
	CUDA_POOL(ctx, e, group);
}

/*
 * cudaMemPrefetchAsync(address, count, ...): the position of the destination and the stream differs between CUDA 12
 * and 13. The batches begin with (addresses, sizes, count); their bytes are not recorded.
 */
SPAN(cuda_prefetch,
     "libcudart.so:cudaMemPrefetchAsync,cudaMemPrefetchAsync_ptsz,cudaMemPrefetchAsync_v2,"
     "cudaMemPrefetchAsync_v2_ptsz",
     cuda_prefetch)
{
	e->address = ARG1(ctx);
	e->bytes = ARG2(ctx);
}
