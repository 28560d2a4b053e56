// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocations. */
#include "cuda.bpf.h"
#include "cuda_words.bpf.h"

struct alloc_row {
	u8 memory; /* enum cuda_memory */
	u8 bytes, rows, layers, flags, stream, pool;
};

/* (address *, ...), (array *, descriptor *, ...) */
#define ALLOCATIONS(ROW)                                                                                    \
	ROW(FN(Malloc), .bytes = 2)                                                                         \
	ROW(FN(MallocHost), .memory = CUDA_MEMORY_HOST, .bytes = 2)                                         \
	ROW(FN(HostAlloc), .memory = CUDA_MEMORY_HOST, .bytes = 2, .flags = 3)                              \
	ROW(FN(MallocManaged), .memory = CUDA_MEMORY_MANAGED, .bytes = 2, .flags = 3)                       \
	ROW(FN_PTSZ(MallocAsync), .memory = CUDA_MEMORY_POOL, .bytes = 2, .stream = 3)                      \
	ROW(FN_PTSZ(MallocFromPoolAsync), .memory = CUDA_MEMORY_POOL, .bytes = 2, .pool = 3, .stream = 4)   \
	ROW(FN(MallocPitch), .bytes = 3, .rows = 4)                                                         \
	ROW(FN(Malloc3D), .bytes = 7, .rows = 8, .layers = 9)                                               \
	ROW(FN(MallocArray), .memory = CUDA_MEMORY_ARRAY, .bytes = 3, .rows = 4, .flags = 5)                \
	ROW(FN(Malloc3DArray), .memory = CUDA_MEMORY_ARRAY, .bytes = 7, .rows = 8, .layers = 9, .flags = 3) \
	ROW(FN(MallocMipmappedArray), .memory = CUDA_MEMORY_ARRAY, .bytes = 7, .rows = 8, .layers = 9, .flags = 4)

struct channel_desc { /* cudaChannelFormatDesc, driver_types.h */
	s32 bits[4];
	s32 kind;
};

/*
 * The size of an array is given in elements, whose size the descriptor has. A height or depth of 0 means that the
 * array has fewer dimensions.
 */
static __always_inline void alloc_by_struct(struct cuda_alloc *e, const u64 *words, const struct alloc_row *r)
{
	struct channel_desc d = {};
	u64 rows = word(words, r->rows), layers = word(words, r->layers);

	if (r->memory != CUDA_MEMORY_ARRAY)
		return;
	bpf_probe_read_user(&d, sizeof(d), (const void *)words[2]);
	e->bytes = (u64)(u32)(d.bits[0] + d.bits[1] + d.bits[2] + d.bits[3]) / 8 * word(words, r->bytes) *
		   (rows ? rows : 1) * (layers ? layers : 1);
}

#include "cuda_alloc.bpf.h"
