// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocation, freeing, mapping, pools, pinning and prefetching. */
#include "cudadrv.bpf.h"

struct array_2d { /* CUDA_ARRAY_DESCRIPTOR */
	u64 width, height;
	u32 format, channels;
};

struct array_3d { /* CUDA_ARRAY3D_DESCRIPTOR */
	u64 width, height, depth;
	u32 format, channels, flags;
};

struct memory_prop { /* the start of CUmemAllocationProp */
	u32 type, handle_types;
	u32 location_type;
	s32 location_id;
};

enum {
	ALLOC_ARRAY = ALLOC_COMMON,
	ALLOC_3D_ARRAY,
	ALLOC_PHYSICAL,
};

/* Bytes per channel of a CUarray_format; 0 for formats whose channels are not plain numbers. */
static __always_inline u64 format_bytes(u32 format)
{
	switch (format) {
	case 0x01: /* UNSIGNED_INT8, SIGNED_INT8 */
	case 0x08:
		return 1;
	case 0x02: /* UNSIGNED_INT16, SIGNED_INT16, HALF */
	case 0x09:
	case 0x10:
		return 2;
	case 0x03: /* UNSIGNED_INT32, SIGNED_INT32, FLOAT */
	case 0x0a:
	case 0x20:
		return 4;
	default:
		return 0;
	}
}

/* A height or depth of 0 means that the array has fewer dimensions. */
static __always_inline u64 array_bytes(u32 format, u32 channels, u64 width, u64 height, u64 depth)
{
	return format_bytes(format) * channels * width * (height ? height : 1) * (depth ? depth : 1);
}

static __always_inline void alloc_array(struct cudadrv_alloc *e, u64 descriptor, u32 group)
{
	struct array_2d d = {};
	struct array_3d d3 = {};

	e->memory = CUDA_MEMORY_ARRAY;
	if (group == ALLOC_ARRAY) {
		bpf_probe_read_user(&d, sizeof(d), (const void *)descriptor);
		e->bytes = array_bytes(d.format, d.channels, d.width, d.height, 1);
	} else {
		bpf_probe_read_user(&d3, sizeof(d3), (const void *)descriptor);
		e->bytes = array_bytes(d3.format, d3.channels, d3.width, d3.height, d3.depth);
		e->api_flags = d3.flags;
	}
}

static __always_inline void alloc_physical(struct cudadrv_alloc *e, u64 prop, u64 flags)
{
	struct memory_prop p = {};

	e->memory = CUDA_MEMORY_PHYSICAL;
	e->api_flags = flags;
	if (!bpf_probe_read_user(&p, sizeof(p), (const void *)prop))
		e->device = p.location_id;
}

static __always_inline void alloc_return(struct cudadrv_alloc *e)
{
	e->address = args__out(&e->call, SPAN_OUT(e));
}

/* All begin with (address *, ...). */
DRIVER_STACK_EXIT(cudadrv_alloc,
		  "cuMemAlloc_v2;"
		  "cuMemAllocHost_v2;"
		  "cuMemHostAlloc;"
		  "cuMemAllocManaged;"
		  "cuMemAllocAsync,cuMemAllocAsync_ptsz;"
		  "cuMemAllocFromPoolAsync,cuMemAllocFromPoolAsync_ptsz;"
		  "cuMemAllocPitch_v2;"
		  "cuArrayCreate_v2;"
		  "cuArray3DCreate_v2,cuMipmappedArrayCreate;"
		  "cuMemCreate",
		  cudadrv_alloc, alloc_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = a.a1;
	e->bytes = a.a2;
	e->device = -1;
	switch (group) {
		CUDA_ALLOC_CASES(e, a);
	case ALLOC_PHYSICAL: /* handle *, bytes, prop, flags */
		alloc_physical(e, a.a3, a.a4);
		break;
	default: /* array *, descriptor */
		alloc_array(e, a.a2, group);
	}
}

/* cuMemFree*(address), cuMemFreeAsync(address, stream), cuMemRelease(handle) */
DRIVER_STACK(cudadrv_free,
	     "cuMemFree,cuMemFree_v2;"
	     "cuMemFreeHost;"
	     "cuMemFreeAsync,cuMemFreeAsync_ptsz;"
	     "cuArrayDestroy,cuMipmappedArrayDestroy;"
	     "cuMemRelease",
	     cudadrv_free)
{
	u64 stream = ARG2(ctx);

	barrier_var(stream);
	e->address = ARG1(ctx);
	e->stream = group == 2 ? stream : 0;
	e->memory = group == 0 ? CUDA_MEMORY_DEVICE :
		    group == 1 ? CUDA_MEMORY_HOST :
		    group == 2 ? CUDA_MEMORY_POOL :
		    group == 3 ? CUDA_MEMORY_ARRAY :
				 CUDA_MEMORY_PHYSICAL;
}

/* cuMemMap(address, bytes, offset, handle, flags), cuMemUnmap(address, bytes) */
DRIVER(cudadrv_map, "cuMemMap;cuMemUnmap", cudadrv_map)
{
	struct args a = args__read(ctx);

	e->address = a.a1;
	e->bytes = a.a2;
	if (!group) {
		e->offset = a.a3;
		e->handle = a.a4;
	}
}

/* cuMemHostRegister(address, bytes, flags), cuMemHostUnregister(address) */
DRIVER(cudadrv_host_register, "cuMemHostRegister,cuMemHostRegister_v2;cuMemHostUnregister", cudadrv_host_register)
{
	CUDA_HOST_REGISTER(ctx, e, group);
}

CUDA_HANDLE_RETURN(pool_return, cudadrv_pool, pool)

/* cuMemPoolDestroy(pool), cuMemPoolTrimTo(pool, bytes), cuMemPoolCreate(pool *, props) */
DRIVER_EXIT(cudadrv_pool, "cuMemPoolDestroy;cuMemPoolTrimTo;cuMemPoolCreate", cudadrv_pool, pool_return)
{
	CUDA_POOL(ctx, e, group);
}

/*
 * cuMemPrefetchAsync(address, bytes, ...): the position of the destination and the stream differs between the
 * versions.
 */
DRIVER(cudadrv_prefetch, "cuMemPrefetchAsync,cuMemPrefetchAsync_ptsz,cuMemPrefetchAsync_v2,cuMemPrefetchAsync_v2_ptsz",
       cudadrv_prefetch)
{
	e->address = ARG1(ctx);
	e->bytes = ARG2(ctx);
}
