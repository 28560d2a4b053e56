// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies and sets. */
#include "cuda.bpf.h"
#include "cuda_words.bpf.h"

struct copy_row {
	u8 src, bytes, rows; /* no bytes: the arguments are in a struct, to which the first one points */
	u8 kind; /* 0: CUDA_COPY_DEFAULT */
	u8 stream;
};

#define COPIES(ROW)                                                                                                    \
	ROW(FN_PTDS(Memcpy), .src = 2, .bytes = 3, .kind = 4)                                                          \
	ROW(FN_PTSZ(MemcpyAsync), .src = 2, .bytes = 3, .kind = 4, .stream = 5)                                        \
	ROW(FN_PTDS(MemcpyToSymbol) FN_PTDS(MemcpyFromSymbol), .src = 2, .bytes = 3, .kind = 5)                        \
	ROW(FN_PTSZ(MemcpyToSymbolAsync) FN_PTSZ(MemcpyFromSymbolAsync), .src = 2, .bytes = 3, .kind = 5, .stream = 6) \
	ROW(FN_PTDS(Memcpy2D), .src = 3, .bytes = 5, .rows = 6, .kind = 7)                                             \
	ROW(FN_PTSZ(Memcpy2DAsync), .src = 3, .bytes = 5, .rows = 6, .kind = 7, .stream = 8)                           \
	ROW(FN_PTDS(Memcpy3D))                                                                                         \
	ROW(FN_PTSZ(Memcpy3DAsync), .stream = 2)                                                                       \
	ROW(FN_PTDS(MemcpyToArray), .src = 4, .bytes = 5, .kind = 6)                                                   \
	ROW(FN_PTSZ(MemcpyToArrayAsync), .src = 4, .bytes = 5, .kind = 6, .stream = 7)                                 \
	ROW(FN_PTDS(MemcpyFromArray), .src = 2, .bytes = 5, .kind = 6)                                                 \
	ROW(FN_PTSZ(MemcpyFromArrayAsync), .src = 2, .bytes = 5, .kind = 6, .stream = 7)                               \
	ROW(FN_PTDS(Memcpy2DToArray), .src = 4, .bytes = 6, .rows = 7, .kind = 8)                                      \
	ROW(FN_PTSZ(Memcpy2DToArrayAsync), .src = 4, .bytes = 6, .rows = 7, .kind = 8, .stream = 9)                    \
	ROW(FN_PTDS(Memcpy2DFromArray), .src = 3, .bytes = 6, .rows = 7, .kind = 8)                                    \
	ROW(FN_PTSZ(Memcpy2DFromArrayAsync), .src = 3, .bytes = 6, .rows = 7, .kind = 8, .stream = 9)                  \
	ROW(FN_PTDS(MemcpyArrayToArray), .src = 4, .bytes = 7, .kind = 8)                                              \
	ROW(FN_PTDS(Memcpy2DArrayToArray), .src = 4, .bytes = 7, .rows = 8, .kind = 9)                                 \
	ROW(FN_PTSZ(MemcpyWithAttributesAsync), .src = 2, .bytes = 3, .stream = 5)

struct set_row {
	u8 dst, value, bytes, rows, layers, stream;
};

/* A three-dimensional set has its cudaPitchedPtr and its cudaExtent on the stack. */
#define SETS(ROW)                                                                             \
	ROW(FN_PTDS(Memset), .dst = 1, .value = 2, .bytes = 3)                                \
	ROW(FN_PTSZ(MemsetAsync), .dst = 1, .value = 2, .bytes = 3, .stream = 4)              \
	ROW(FN_PTDS(Memset2D), .dst = 1, .value = 3, .bytes = 4, .rows = 5)                   \
	ROW(FN_PTSZ(Memset2DAsync), .dst = 1, .value = 3, .bytes = 4, .rows = 5, .stream = 6) \
	ROW(FN_PTDS(Memset3D), .dst = 7, .value = 1, .bytes = 11, .rows = 12, .layers = 13)   \
	ROW(FN_PTSZ(Memset3DAsync), .dst = 7, .value = 1, .bytes = 11, .rows = 12, .layers = 13, .stream = 2)

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

static __always_inline void copy_by_struct(struct cuda_copy *e, u64 params, const struct copy_row *r)
{
	struct cuda_3d_copy p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->dst = p.dst.array ? p.dst.array : p.dst.ptr;
	e->src = p.src.array ? p.src.array : p.src.ptr;
	e->bytes = p.extent[0] * p.extent[1] * p.extent[2];
	e->kind = p.kind;
}

static __always_inline void copy_peer_by_struct(struct cuda_copy_peer *e, u64 params)
{
	struct cuda_3d_peer_copy p = {};

	bpf_probe_read_user(&p, sizeof(p), (const void *)params);
	e->dst = p.dst.array ? p.dst.array : p.dst.ptr;
	e->dst_device = p.dst_device;
	e->src = p.src.array ? p.src.array : p.src.ptr;
	e->src_device = p.src_device;
	e->bytes = p.extent[0] * p.extent[1] * p.extent[2];
}

#include "cuda_copy.bpf.h"
