// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets. Where a function has a _v2, its first version exists for programs of CUDA 3 on 32-bit machines.
 * First versions that take a struct have another layout of it and are recorded as cudadrv_call.
 */
#include "cudadrv.bpf.h"

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

enum {
	COPY,
	COPY_ASYNC,
	COPY_HTOD,
	COPY_HTOD_ASYNC,
	COPY_DTOH,
	COPY_DTOH_ASYNC,
	COPY_DTOD,
	COPY_DTOD_ASYNC,
	COPY_DTOA,
	COPY_ATOD,
	COPY_HTOA,
	COPY_HTOA_ASYNC,
	COPY_ATOH,
	COPY_ATOH_ASYNC,
	COPY_ATOA,
	COPY_ATTRIBUTES,
	COPY_2D,
	COPY_2D_ASYNC,
	COPY_3D,
	COPY_3D_ASYNC,
};

static __always_inline u32 kind_of_group(u32 group)
{
	switch (group) {
	case COPY_HTOD:
	case COPY_HTOD_ASYNC:
	case COPY_HTOA:
	case COPY_HTOA_ASYNC:
		return CUDA_COPY_HTOD;
	case COPY_DTOH:
	case COPY_DTOH_ASYNC:
	case COPY_ATOH:
	case COPY_ATOH_ASYNC:
		return CUDA_COPY_DTOH;
	case COPY:
	case COPY_ASYNC:
	case COPY_ATTRIBUTES:
		return CUDA_COPY_DEFAULT;
	default:
		return CUDA_COPY_DTOD;
	}
}

static __always_inline void copy_plain(const struct args *a, struct cudadrv_copy *e, u32 group)
{
	e->dst = a->a1;
	e->kind = kind_of_group(group);
	switch (group) {
	case COPY_DTOA: /* dst, dst offset, src, bytes, stream */
	case COPY_HTOA:
	case COPY_HTOA_ASYNC:
		e->src = a->a3;
		e->bytes = a->a4;
		e->stream = group == COPY_HTOA_ASYNC ? a->a5 : 0;
		break;
	case COPY_ATOD: /* dst, src, src offset, bytes, stream */
	case COPY_ATOH:
	case COPY_ATOH_ASYNC:
		e->src = a->a2;
		e->bytes = a->a4;
		e->stream = group == COPY_ATOH_ASYNC ? a->a5 : 0;
		break;
	case COPY_ATOA: /* dst, dst offset, src, src offset, bytes */
		e->src = a->a3;
		e->bytes = a->a5;
		break;
	case COPY_ATTRIBUTES: /* dst, src, bytes, attributes, stream */
		e->src = a->a2;
		e->bytes = a->a3;
		e->stream = a->a5;
		break;
	default: /* dst, src, bytes, stream */
		e->src = a->a2;
		e->bytes = a->a3;
		e->stream = group & 1 ? a->a4 : 0; /* the asynchronous copies have odd groups */
	}
}

DRIVER_STACK(cudadrv_copy,
	     "cuMemcpy,cuMemcpy_ptds;"
	     "cuMemcpyAsync,cuMemcpyAsync_ptsz;"
	     "cuMemcpyHtoD,cuMemcpyHtoD_v2,cuMemcpyHtoD_v2_ptds;"
	     "cuMemcpyHtoDAsync,cuMemcpyHtoDAsync_v2,cuMemcpyHtoDAsync_v2_ptsz;"
	     "cuMemcpyDtoH,cuMemcpyDtoH_v2,cuMemcpyDtoH_v2_ptds;"
	     "cuMemcpyDtoHAsync,cuMemcpyDtoHAsync_v2,cuMemcpyDtoHAsync_v2_ptsz;"
	     "cuMemcpyDtoD,cuMemcpyDtoD_v2,cuMemcpyDtoD_v2_ptds;"
	     "cuMemcpyDtoDAsync,cuMemcpyDtoDAsync_v2,cuMemcpyDtoDAsync_v2_ptsz;"
	     "cuMemcpyDtoA,cuMemcpyDtoA_v2,cuMemcpyDtoA_v2_ptds;"
	     "cuMemcpyAtoD,cuMemcpyAtoD_v2,cuMemcpyAtoD_v2_ptds;"
	     "cuMemcpyHtoA,cuMemcpyHtoA_v2,cuMemcpyHtoA_v2_ptds;"
	     "cuMemcpyHtoAAsync,cuMemcpyHtoAAsync_v2,cuMemcpyHtoAAsync_v2_ptsz;"
	     "cuMemcpyAtoH,cuMemcpyAtoH_v2,cuMemcpyAtoH_v2_ptds;"
	     "cuMemcpyAtoHAsync,cuMemcpyAtoHAsync_v2,cuMemcpyAtoHAsync_v2_ptsz;"
	     "cuMemcpyAtoA,cuMemcpyAtoA_v2,cuMemcpyAtoA_v2_ptds;"
	     "cuMemcpyWithAttributesAsync,cuMemcpyWithAttributesAsync_ptsz;"
	     "cuMemcpy2D_v2,cuMemcpy2D_v2_ptds,cuMemcpy2DUnaligned_v2,cuMemcpy2DUnaligned_v2_ptds;"
	     "cuMemcpy2DAsync_v2,cuMemcpy2DAsync_v2_ptsz;"
	     "cuMemcpy3D_v2,cuMemcpy3D_v2_ptds;"
	     "cuMemcpy3DAsync_v2,cuMemcpy3DAsync_v2_ptsz",
	     cudadrv_copy)
{
	struct args a = args__read(ctx);

	if (group <= COPY_ATTRIBUTES) {
		copy_plain(&a, e, group);
		return;
	}
	if (group <= COPY_2D_ASYNC)
		copy_2d(e, a.a1);
	else
		copy_3d(e, a.a1);
	e->stream = group & 1 ? a.a2 : 0; /* here, too, the asynchronous copies have odd groups */
}

/* cuMemcpyPeer(dst, dstContext, src, srcContext, bytes, stream), cuMemcpy3DPeer(params, stream) */
DRIVER(cudadrv_copy_peer,
       "cuMemcpyPeer,cuMemcpyPeer_ptds;"
       "cuMemcpyPeerAsync,cuMemcpyPeerAsync_ptsz;"
       "cuMemcpy3DPeer,cuMemcpy3DPeer_ptds;"
       "cuMemcpy3DPeerAsync,cuMemcpy3DPeerAsync_ptsz",
       cudadrv_copy_peer)
{
	struct args a = args__read(ctx);
	struct copy_3d p = {};

	if (group <= 1) {
		e->dst = a.a1;
		e->dst_context = a.a2;
		e->src = a.a3;
		e->src_context = a.a4;
		e->bytes = a.a5;
		e->stream = group == 1 ? a.a6 : 0;
		return;
	}
	bpf_probe_read_user(&p, sizeof(p), (const void *)a.a1);
	e->dst = address_of(p.dst.type, p.dst.host, p.dst.device, p.dst.array);
	e->dst_context = p.dst.context;
	e->src = address_of(p.src.type, p.src.host, p.src.device, p.src.array);
	e->src_context = p.src.context;
	e->bytes = p.width * p.height * p.depth;
	e->stream = group == 3 ? a.a2 : 0;
}

/*
 * cuMemcpyBatchAsync(dsts, srcs, sizes, count, ...), cuMemcpy3DBatchAsync(numOps, ops, ...),
 * cuMemcpy3DWithAttributesAsync(op, flags, stream)
 */
DRIVER(cudadrv_copy_batch,
       "cuMemcpyBatchAsync,cuMemcpyBatchAsync_ptsz,cuMemcpyBatchAsync_v2,cuMemcpyBatchAsync_v2_ptsz;"
       "cuMemcpy3DBatchAsync,cuMemcpy3DBatchAsync_ptsz,cuMemcpy3DBatchAsync_v2,cuMemcpy3DBatchAsync_v2_ptsz;"
       "cuMemcpy3DWithAttributesAsync,cuMemcpy3DWithAttributesAsync_ptsz",
       cudadrv_copy_batch)
{
	struct args a = args__read(ctx);

	e->copies = group == 0 ? a.a4 : group == 1 ? a.a1 : 1;
	if (!group)
		e->bytes = args__sum(a.a3, a.a4);
}

/*
 * Groups 0 to 2: elements of 1, 2 and 4 bytes; 3 to 5: the same, asynchronous; 6 to 8: two-dimensional; 9 to 11:
 * two-dimensional and asynchronous.
 */
DRIVER_STACK(cudadrv_set,
	     "cuMemsetD8,cuMemsetD8_v2,cuMemsetD8_v2_ptds;"
	     "cuMemsetD16,cuMemsetD16_v2,cuMemsetD16_v2_ptds;"
	     "cuMemsetD32,cuMemsetD32_v2,cuMemsetD32_v2_ptds;"
	     "cuMemsetD8Async,cuMemsetD8Async_ptsz;"
	     "cuMemsetD16Async,cuMemsetD16Async_ptsz;"
	     "cuMemsetD32Async,cuMemsetD32Async_ptsz;"
	     "cuMemsetD2D8,cuMemsetD2D8_v2,cuMemsetD2D8_v2_ptds;"
	     "cuMemsetD2D16,cuMemsetD2D16_v2,cuMemsetD2D16_v2_ptds;"
	     "cuMemsetD2D32,cuMemsetD2D32_v2,cuMemsetD2D32_v2_ptds;"
	     "cuMemsetD2D8Async,cuMemsetD2D8Async_ptsz;"
	     "cuMemsetD2D16Async,cuMemsetD2D16Async_ptsz;"
	     "cuMemsetD2D32Async,cuMemsetD2D32Async_ptsz",
	     cudadrv_set)
{
	struct args a = args__read(ctx);
	bool asynchronous = (group >= 3 && group < 6) || group >= 9;
	u64 value = group < 6 ? a.a2 : a.a3;

	e->dst = a.a1;
	e->element = 1 << group % 3;
	/* the upper parts of registers with shorter arguments are undefined */
	e->value = e->element == 1 ? (u8)value : e->element == 2 ? (u16)value : (u32)value;
	if (group < 6) { /* dst, value, elements, stream */
		e->bytes = a.a3 * e->element;
		e->stream = asynchronous ? a.a4 : 0;
	} else { /* dst, pitch, value, width in elements, height, stream */
		e->bytes = a.a4 * a.a5 * e->element;
		e->stream = asynchronous ? a.a6 : 0;
	}
}
