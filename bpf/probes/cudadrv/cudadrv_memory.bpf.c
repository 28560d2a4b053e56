// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocation and mapping. */
#include "cudadrv.bpf.h"
#include "probes/cuda/cuda_words.bpf.h"

struct alloc_row {
	u8 memory; /* enum cuda_memory */
	u8 is_3d; /* of an array's descriptor */
	u8 bytes, rows, layers, flags, stream, pool;
};

/* (address *, ...), (array *, descriptor *, ...), (handle *, bytes, properties *, flags) */
#define ALLOCATIONS(ROW)                                                                                    \
	ROW(FN(MemAlloc_v2), .bytes = 2)                                                                    \
	ROW(FN(MemAllocHost_v2), .memory = CUDA_MEMORY_HOST, .bytes = 2)                                    \
	ROW(FN(MemHostAlloc), .memory = CUDA_MEMORY_HOST, .bytes = 2, .flags = 3)                           \
	ROW(FN(MemAllocManaged), .memory = CUDA_MEMORY_MANAGED, .bytes = 2, .flags = 3)                     \
	ROW(FN_PTSZ(MemAllocAsync), .memory = CUDA_MEMORY_POOL, .bytes = 2, .stream = 3)                    \
	ROW(FN_PTSZ(MemAllocFromPoolAsync), .memory = CUDA_MEMORY_POOL, .bytes = 2, .pool = 3, .stream = 4) \
	ROW(FN(MemAllocPitch_v2), .bytes = 3, .rows = 4)                                                    \
	ROW(FN(ArrayCreate_v2), .memory = CUDA_MEMORY_ARRAY)                                                \
	ROW(FN(Array3DCreate_v2) FN(MipmappedArrayCreate), .memory = CUDA_MEMORY_ARRAY, .is_3d = 1)         \
	ROW(FN(MemCreate), .memory = CUDA_MEMORY_PHYSICAL, .bytes = 2, .flags = 4)

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

static __always_inline void alloc_array(struct cudadrv_alloc *e, u64 descriptor, bool is_3d)
{
	struct array_2d d = {};
	struct array_3d d3 = {};

	if (is_3d) {
		bpf_probe_read_user(&d3, sizeof(d3), (const void *)descriptor);
		e->bytes = array_bytes(d3.format, d3.channels, d3.width, d3.height, d3.depth);
		e->api_flags = d3.flags;
	} else {
		bpf_probe_read_user(&d, sizeof(d), (const void *)descriptor);
		e->bytes = array_bytes(d.format, d.channels, d.width, d.height, 1);
	}
}

static __always_inline void alloc_by_struct(struct cudadrv_alloc *e, const u64 *words, const struct alloc_row *r)
{
	struct memory_prop p = {};

	e->device = -1;
	if (r->memory == CUDA_MEMORY_ARRAY)
		alloc_array(e, words[2], r->is_3d);
	else if (r->memory == CUDA_MEMORY_PHYSICAL && !bpf_probe_read_user(&p, sizeof(p), (const void *)words[3]))
		e->device = p.location_id;
}

#include "probes/cuda/cuda_alloc.bpf.h"

/* cuMemMap(address, bytes, offset, handle, flags), cuMemUnmap(address, bytes) */
CALL(map, FN(MemMap) ";" FN(MemUnmap))
{
	struct args a = args__read(ctx);

	e->address = a.a1;
	e->bytes = a.a2;
	if (!group) {
		e->offset = a.a3;
		e->handle = a.a4;
	}
}
