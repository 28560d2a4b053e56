// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets. Where a function has a _v2, its first version exists for programs of CUDA 3 on 32-bit machines.
 * First versions that take a struct have another layout of it and are recorded as cudadrv_call.
 */
#include "cudadrv.bpf.h"
#include "probes/cuda/cuda_words.bpf.h"

struct copy_row {
	u8 src, bytes, rows, stream; /* no bytes: the arguments are in a struct, to which the first one points */
	u8 is_3d; /* of that struct */
	u8 kind; /* enum cuda_copy_kind */
};

#define COPIES(ROW)                                                                                           \
	ROW(FN_PTDS(Memcpy), .src = 2, .bytes = 3, .kind = CUDA_COPY_DEFAULT)                                 \
	ROW(FN_PTSZ(MemcpyAsync), .src = 2, .bytes = 3, .stream = 4, .kind = CUDA_COPY_DEFAULT)               \
	ROW(FN(MemcpyHtoD) FN_PTDS(MemcpyHtoD_v2), .src = 2, .bytes = 3, .kind = CUDA_COPY_HTOD)              \
	ROW(FN(MemcpyHtoDAsync) FN_PTSZ(MemcpyHtoDAsync_v2), .src = 2, .bytes = 3, .stream = 4,               \
	    .kind = CUDA_COPY_HTOD)                                                                           \
	ROW(FN(MemcpyDtoH) FN_PTDS(MemcpyDtoH_v2), .src = 2, .bytes = 3, .kind = CUDA_COPY_DTOH)              \
	ROW(FN(MemcpyDtoHAsync) FN_PTSZ(MemcpyDtoHAsync_v2), .src = 2, .bytes = 3, .stream = 4,               \
	    .kind = CUDA_COPY_DTOH)                                                                           \
	ROW(FN(MemcpyDtoD) FN_PTDS(MemcpyDtoD_v2), .src = 2, .bytes = 3, .kind = CUDA_COPY_DTOD)              \
	ROW(FN(MemcpyDtoDAsync) FN_PTSZ(MemcpyDtoDAsync_v2), .src = 2, .bytes = 3, .stream = 4,               \
	    .kind = CUDA_COPY_DTOD)                                                                           \
	ROW(FN(MemcpyDtoA) FN_PTDS(MemcpyDtoA_v2), .src = 3, .bytes = 4, .kind = CUDA_COPY_DTOD)              \
	ROW(FN(MemcpyAtoD) FN_PTDS(MemcpyAtoD_v2), .src = 2, .bytes = 4, .kind = CUDA_COPY_DTOD)              \
	ROW(FN(MemcpyHtoA) FN_PTDS(MemcpyHtoA_v2), .src = 3, .bytes = 4, .kind = CUDA_COPY_HTOD)              \
	ROW(FN(MemcpyHtoAAsync) FN_PTSZ(MemcpyHtoAAsync_v2), .src = 3, .bytes = 4, .stream = 5,               \
	    .kind = CUDA_COPY_HTOD)                                                                           \
	ROW(FN(MemcpyAtoH) FN_PTDS(MemcpyAtoH_v2), .src = 2, .bytes = 4, .kind = CUDA_COPY_DTOH)              \
	ROW(FN(MemcpyAtoHAsync) FN_PTSZ(MemcpyAtoHAsync_v2), .src = 2, .bytes = 4, .stream = 5,               \
	    .kind = CUDA_COPY_DTOH)                                                                           \
	ROW(FN(MemcpyAtoA) FN_PTDS(MemcpyAtoA_v2), .src = 3, .bytes = 5, .kind = CUDA_COPY_DTOD)              \
	ROW(FN_PTSZ(MemcpyWithAttributesAsync), .src = 2, .bytes = 3, .stream = 5, .kind = CUDA_COPY_DEFAULT) \
	ROW(FN_PTDS(Memcpy2D_v2) FN_PTDS(Memcpy2DUnaligned_v2))                                               \
	ROW(FN_PTSZ(Memcpy2DAsync_v2), .stream = 2)                                                           \
	ROW(FN_PTDS(Memcpy3D_v2), .is_3d = 1)                                                                 \
	ROW(FN_PTSZ(Memcpy3DAsync_v2), .stream = 2, .is_3d = 1)

struct set_row {
	u8 dst, value, bytes, rows, layers, stream; /* bytes: in elements */
	u8 element; /* its bytes */
};

#define SETS(ROW)                                                                                               \
	ROW(FN(MemsetD8) FN_PTDS(MemsetD8_v2), .dst = 1, .value = 2, .bytes = 3, .element = 1)                  \
	ROW(FN(MemsetD16) FN_PTDS(MemsetD16_v2), .dst = 1, .value = 2, .bytes = 3, .element = 2)                \
	ROW(FN(MemsetD32) FN_PTDS(MemsetD32_v2), .dst = 1, .value = 2, .bytes = 3, .element = 4)                \
	ROW(FN_PTSZ(MemsetD8Async), .dst = 1, .value = 2, .bytes = 3, .stream = 4, .element = 1)                \
	ROW(FN_PTSZ(MemsetD16Async), .dst = 1, .value = 2, .bytes = 3, .stream = 4, .element = 2)               \
	ROW(FN_PTSZ(MemsetD32Async), .dst = 1, .value = 2, .bytes = 3, .stream = 4, .element = 4)               \
	ROW(FN(MemsetD2D8) FN_PTDS(MemsetD2D8_v2), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .element = 1)   \
	ROW(FN(MemsetD2D16) FN_PTDS(MemsetD2D16_v2), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .element = 2) \
	ROW(FN(MemsetD2D32) FN_PTDS(MemsetD2D32_v2), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .element = 4) \
	ROW(FN_PTSZ(MemsetD2D8Async), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .stream = 6, .element = 1)   \
	ROW(FN_PTSZ(MemsetD2D16Async), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .stream = 6, .element = 2)  \
	ROW(FN_PTSZ(MemsetD2D32Async), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .stream = 6, .element = 4)

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 }; /* CUmemorytype */

struct copy_endpoint_2d { /* the source or destination in CUDA_MEMCPY2D */
	u64 x, y;
	u64 type; /* an enum and padding */
	u64 host, device, array, pitch;
};

struct copy_2d {
	struct copy_endpoint_2d src, dst;
	u64 width, height;
};

struct copy_endpoint_3d { /* the source or destination in CUDA_MEMCPY3D and, with a context, in CUDA_MEMCPY3D_PEER */
	u64 x, y, z, lod;
	u64 type;
	u64 host, device, array, context, pitch, height;
};

struct copy_3d {
	struct copy_endpoint_3d src, dst;
	u64 width, height, depth;
};

static __always_inline u64 address_of(u32 type, u64 host, u64 device, u64 array)
{
	return type == MEMORY_HOST ? host : type == MEMORY_ARRAY ? array : device;
}

static __always_inline u32 kind_of(u32 src, u32 dst)
{
	if (src == MEMORY_UNIFIED || dst == MEMORY_UNIFIED)
		return CUDA_COPY_DEFAULT;
	if (src == MEMORY_HOST)
		return dst == MEMORY_HOST ? CUDA_COPY_HTOH : CUDA_COPY_HTOD;
	return dst == MEMORY_HOST ? CUDA_COPY_DTOH : CUDA_COPY_DTOD;
}

static __always_inline void copy_2d(struct cudadrv_copy *e, u64 params)
{
	struct copy_2d p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->src = address_of(p.src.type, p.src.host, p.src.device, p.src.array);
	e->dst = address_of(p.dst.type, p.dst.host, p.dst.device, p.dst.array);
	e->bytes = p.width * p.height;
	e->kind = kind_of(p.src.type, p.dst.type);
}

static __always_inline void copy_3d(struct cudadrv_copy *e, u64 params)
{
	struct copy_3d p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->src = address_of(p.src.type, p.src.host, p.src.device, p.src.array);
	e->dst = address_of(p.dst.type, p.dst.host, p.dst.device, p.dst.array);
	e->bytes = p.width * p.height * p.depth;
	e->kind = kind_of(p.src.type, p.dst.type);
}

static __always_inline void copy_by_struct(struct cudadrv_copy *e, u64 params, const struct copy_row *r)
{
	if (r->is_3d)
		copy_3d(e, params);
	else
		copy_2d(e, params);
}

static __always_inline void copy_peer_by_struct(struct cudadrv_copy_peer *e, u64 params)
{
	struct copy_3d p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->dst = address_of(p.dst.type, p.dst.host, p.dst.device, p.dst.array);
	e->dst_context = p.dst.context;
	e->src = address_of(p.src.type, p.src.host, p.src.device, p.src.array);
	e->src_context = p.src.context;
	e->bytes = p.width * p.height * p.depth;
}

/* The upper parts of registers with shorter arguments are undefined. */
static __always_inline void set_elements(struct cudadrv_set *e, u64 value, u32 element)
{
	e->bytes *= element;
	e->element = element;
	e->value = element == 1 ? (u8)value : element == 2 ? (u16)value : (u32)value;
}

#include "probes/cuda/cuda_copy.bpf.h"
