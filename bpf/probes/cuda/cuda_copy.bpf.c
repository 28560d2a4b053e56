// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets. The position of an argument follows from the SysV ABI: six registers, then the stack; a struct of
 * more than 16 bytes that is passed by value is on the stack and takes no register.
 */
#include "core/sonde.bpf.h"
#include "cuda.h"
#include "core/args.h"
#include "cuda_stack.bpf.h"

/* driver_types.h */
struct cuda_3d_endpoint {
	u64 array;
	u64 pos[3];
	u64 ptr, pitch, xsize, ysize;
};

struct cuda_3d_copy { /* cudaMemcpy3DParms */
	struct cuda_3d_endpoint src, dst;
	u64 extent[3];
	u32 kind;
};

struct cuda_3d_peer_copy { /* cudaMemcpy3DPeerParms */
	struct cuda_3d_endpoint src;
	s64 src_device; /* an int and padding */
	struct cuda_3d_endpoint dst;
	s64 dst_device;
	u64 extent[3];
};

static __always_inline void copy_3d(struct cuda_copy *e, u64 params)
{
	struct cuda_3d_copy p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->dst = p.dst.array ? p.dst.array : p.dst.ptr;
	e->src = p.src.array ? p.src.array : p.src.ptr;
	e->bytes = p.extent[0] * p.extent[1] * p.extent[2];
	e->kind = p.kind;
}

enum {
	COPY,
	COPY_ASYNC,
	COPY_SYMBOL,
	COPY_SYMBOL_ASYNC,
	COPY_2D,
	COPY_2D_ASYNC,
	COPY_3D,
	COPY_3D_ASYNC,
	COPY_TO_ARRAY,
	COPY_TO_ARRAY_ASYNC,
	COPY_FROM_ARRAY,
	COPY_FROM_ARRAY_ASYNC,
	COPY_2D_TO_ARRAY,
	COPY_2D_TO_ARRAY_ASYNC,
	COPY_2D_FROM_ARRAY,
	COPY_2D_FROM_ARRAY_ASYNC,
	COPY_ARRAYS,
	COPY_2D_ARRAYS,
	COPY_ATTRIBUTES,
};

static __always_inline void copy_plain(struct pt_regs *ctx, struct cuda_copy *e, u32 group)
{
	struct args a = args__read(ctx);

	e->dst = a.a1;
	e->src = a.a2;
	e->bytes = a.a3;
	if (group >= COPY_SYMBOL && group <= COPY_SYMBOL_ASYNC) {
		/* count, offset, kind */
		e->kind = a.a5;
		e->stream = group == COPY_SYMBOL_ASYNC ? a.a6 : 0;
		return;
	}
	e->kind = group == COPY_ATTRIBUTES ? CUDA_COPY_DEFAULT : a.a4;
	e->stream = group == COPY ? 0 : a.a5;
}

/* Copies with an array as source or destination, or in two dimensions: some arguments are on the stack. */
static __always_inline void copy_shaped(struct pt_regs *ctx, struct cuda_copy *e, u32 group)
{
	struct args a = args__read(ctx);
	u64 s[3] = {};

	bpf_probe_read_user(s, sizeof(s), (const void *)(a.sp + 8));
	e->dst = a.a1;
	switch (group) {
	case COPY_2D: /* dst, dpitch, src, spitch, width, height, kind, stream */
	case COPY_2D_ASYNC:
		e->src = a.a3;
		e->bytes = a.a5 * a.a6;
		e->kind = s[0];
		e->stream = group == COPY_2D_ASYNC ? s[1] : 0;
		break;
	case COPY_TO_ARRAY: /* dst, wOffset, hOffset, src, count, kind, stream */
	case COPY_TO_ARRAY_ASYNC:
		e->src = a.a4;
		e->bytes = a.a5;
		e->kind = a.a6;
		e->stream = group == COPY_TO_ARRAY_ASYNC ? s[0] : 0;
		break;
	case COPY_FROM_ARRAY: /* dst, src, wOffset, hOffset, count, kind, stream */
	case COPY_FROM_ARRAY_ASYNC:
		e->src = a.a2;
		e->bytes = a.a5;
		e->kind = a.a6;
		e->stream = group == COPY_FROM_ARRAY_ASYNC ? s[0] : 0;
		break;
	case COPY_2D_TO_ARRAY: /* dst, wOffset, hOffset, src, spitch, width, height, kind, stream */
	case COPY_2D_TO_ARRAY_ASYNC:
		e->src = a.a4;
		e->bytes = a.a6 * s[0];
		e->kind = s[1];
		e->stream = group == COPY_2D_TO_ARRAY_ASYNC ? s[2] : 0;
		break;
	case COPY_2D_FROM_ARRAY: /* dst, dpitch, src, wOffset, hOffset, width, height, kind, stream */
	case COPY_2D_FROM_ARRAY_ASYNC:
		e->src = a.a3;
		e->bytes = a.a6 * s[0];
		e->kind = s[1];
		e->stream = group == COPY_2D_FROM_ARRAY_ASYNC ? s[2] : 0;
		break;
	case COPY_ARRAYS: /* dst, wOffset, hOffset, src, wOffset, hOffset, count, kind */
		e->src = a.a4;
		e->bytes = s[0];
		e->kind = s[1];
		break;
	default: /* COPY_2D_ARRAYS: ... width, height, kind */
		e->src = a.a4;
		e->bytes = s[0] * s[1];
		e->kind = s[2];
	}
}

CUDA_CALL(cuda_copy,
	  "cudaMemcpy,cudaMemcpy_ptds;"
	  "cudaMemcpyAsync,cudaMemcpyAsync_ptsz;"
	  "cudaMemcpyToSymbol,cudaMemcpyToSymbol_ptds,cudaMemcpyFromSymbol,cudaMemcpyFromSymbol_ptds;"
	  "cudaMemcpyToSymbolAsync,cudaMemcpyToSymbolAsync_ptsz,cudaMemcpyFromSymbolAsync,"
	  "cudaMemcpyFromSymbolAsync_ptsz;"
	  "cudaMemcpy2D,cudaMemcpy2D_ptds;"
	  "cudaMemcpy2DAsync,cudaMemcpy2DAsync_ptsz;"
	  "cudaMemcpy3D,cudaMemcpy3D_ptds;"
	  "cudaMemcpy3DAsync,cudaMemcpy3DAsync_ptsz;"
	  "cudaMemcpyToArray,cudaMemcpyToArray_ptds;"
	  "cudaMemcpyToArrayAsync,cudaMemcpyToArrayAsync_ptsz;"
	  "cudaMemcpyFromArray,cudaMemcpyFromArray_ptds;"
	  "cudaMemcpyFromArrayAsync,cudaMemcpyFromArrayAsync_ptsz;"
	  "cudaMemcpy2DToArray,cudaMemcpy2DToArray_ptds;"
	  "cudaMemcpy2DToArrayAsync,cudaMemcpy2DToArrayAsync_ptsz;"
	  "cudaMemcpy2DFromArray,cudaMemcpy2DFromArray_ptds;"
	  "cudaMemcpy2DFromArrayAsync,cudaMemcpy2DFromArrayAsync_ptsz;"
	  "cudaMemcpyArrayToArray,cudaMemcpyArrayToArray_ptds;"
	  "cudaMemcpy2DArrayToArray,cudaMemcpy2DArrayToArray_ptds;"
	  "cudaMemcpyWithAttributesAsync,cudaMemcpyWithAttributesAsync_ptsz",
	  cuda_copy)
{
	u64 params = ARG1(ctx), stream = ARG2(ctx);

	barrier_var(stream);
	if (group <= COPY_SYMBOL_ASYNC || group == COPY_ATTRIBUTES) {
		copy_plain(ctx, e, group);
	} else if (group == COPY_3D || group == COPY_3D_ASYNC) {
		copy_3d(e, params);
		e->stream = group == COPY_3D_ASYNC ? stream : 0;
	} else {
		copy_shaped(ctx, e, group);
	}
}

/* cudaMemcpyPeer(dst, dstDevice, src, srcDevice, count, stream), cudaMemcpy3DPeer(params, stream) */
SPAN(cuda_copy_peer,
     "libcudart.so:"
     "cudaMemcpyPeer;"
     "cudaMemcpyPeerAsync;"
     "cudaMemcpy3DPeer,cudaMemcpy3DPeer_ptds;"
     "cudaMemcpy3DPeerAsync,cudaMemcpy3DPeerAsync_ptsz",
     cuda_copy_peer)
{
	struct cuda_3d_peer_copy p = {};
	struct args a = args__read(ctx);

	if (group <= 1) {
		e->dst = a.a1;
		e->dst_device = a.a2;
		e->src = a.a3;
		e->src_device = a.a4;
		e->bytes = a.a5;
		e->stream = group == 1 ? a.a6 : 0;
		return;
	}
	bpf_probe_read_user(&p, sizeof(p), (const void *)a.a1);
	e->dst = p.dst.array ? p.dst.array : p.dst.ptr;
	e->dst_device = p.dst_device;
	e->src = p.src.array ? p.src.array : p.src.ptr;
	e->src_device = p.src_device;
	e->bytes = p.extent[0] * p.extent[1] * p.extent[2];
	e->stream = group == 3 ? a.a2 : 0;
}

/*
 * cudaMemcpyBatchAsync(dsts, srcs, sizes, count, ...), cudaMemcpy3DBatchAsync(numOps, ops, ...),
 * cudaMemcpy3DWithAttributesAsync(op, flags, stream). The position of the stream argument differs between CUDA 12 and
 * 13.
 */
SPAN(cuda_copy_batch,
     "libcudart.so:"
     "cudaMemcpyBatchAsync,cudaMemcpyBatchAsync_ptsz;"
     "cudaMemcpy3DBatchAsync,cudaMemcpy3DBatchAsync_ptsz;"
     "cudaMemcpy3DWithAttributesAsync,cudaMemcpy3DWithAttributesAsync_ptsz",
     cuda_copy_batch)
{
	struct args a = args__read(ctx);

	e->copies = group == 0 ? a.a4 : group == 1 ? a.a1 : 1;
	if (!group)
		e->bytes = args__sum(a.a3, a.a4);
}

CUDA_CALL(cuda_set,
	  "cudaMemset,cudaMemset_ptds;"
	  "cudaMemsetAsync,cudaMemsetAsync_ptsz;"
	  "cudaMemset2D,cudaMemset2D_ptds;"
	  "cudaMemset2DAsync,cudaMemset2DAsync_ptsz;"
	  "cudaMemset3D,cudaMemset3D_ptds;"
	  "cudaMemset3DAsync,cudaMemset3DAsync_ptsz",
	  cuda_set)
{
	struct args a = args__read(ctx);
	u64 s[7] = {};

	if (group <= 1) { /* dst, value, count, stream */
		e->dst = a.a1;
		e->value = a.a2;
		e->bytes = a.a3;
		e->stream = group == 1 ? a.a4 : 0;
	} else if (group <= 3) { /* dst, pitch, value, width, height, stream */
		e->dst = a.a1;
		e->value = a.a3;
		e->bytes = a.a4 * a.a5;
		e->stream = group == 3 ? a.a6 : 0;
	} else { /* cudaPitchedPtr by value, value, cudaExtent by value, stream */
		bpf_probe_read_user(s, sizeof(s), (const void *)(a.sp + 8));
		e->dst = s[0];
		e->value = a.a1;
		e->bytes = s[4] * s[5] * s[6];
		e->stream = group == 5 ? a.a2 : 0;
	}
}
