// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_private.h"
#include "util/array.h"

#include "util/search.h"

/*
 * CUPTI_DRIVER_TRACE_CBID_... of cupti_driver_cbid.h, CUDA 13.5: those that the shim subscribes to. They are never
 * renumbered.
 */
static const struct {
	u16 cbid;
	const char *name;
} functions[] = {
	{ 115, "cuLaunch" },
	{ 116, "cuLaunchGrid" },
	{ 117, "cuLaunchGridAsync" },
	{ 216, "cuMemsetD8Async" },
	{ 218, "cuMemsetD16Async" },
	{ 220, "cuMemsetD32Async" },
	{ 222, "cuMemsetD2D8Async" },
	{ 224, "cuMemsetD2D16Async" },
	{ 226, "cuMemsetD2D32Async" },
	{ 249, "cuMemsetD8_v2" },
	{ 250, "cuMemsetD16_v2" },
	{ 251, "cuMemsetD32_v2" },
	{ 252, "cuMemsetD2D8_v2" },
	{ 253, "cuMemsetD2D16_v2" },
	{ 254, "cuMemsetD2D32_v2" },
	{ 276, "cuMemcpyHtoD_v2" },
	{ 277, "cuMemcpyHtoDAsync_v2" },
	{ 278, "cuMemcpyDtoH_v2" },
	{ 279, "cuMemcpyDtoHAsync_v2" },
	{ 280, "cuMemcpyDtoD_v2" },
	{ 281, "cuMemcpyDtoDAsync_v2" },
	{ 282, "cuMemcpyAtoH_v2" },
	{ 283, "cuMemcpyAtoHAsync_v2" },
	{ 284, "cuMemcpyAtoD_v2" },
	{ 285, "cuMemcpyDtoA_v2" },
	{ 286, "cuMemcpyAtoA_v2" },
	{ 287, "cuMemcpy2D_v2" },
	{ 288, "cuMemcpy2DUnaligned_v2" },
	{ 289, "cuMemcpy2DAsync_v2" },
	{ 290, "cuMemcpy3D_v2" },
	{ 291, "cuMemcpy3DAsync_v2" },
	{ 292, "cuMemcpyHtoA_v2" },
	{ 293, "cuMemcpyHtoAAsync_v2" },
	{ 305, "cuMemcpy" },
	{ 306, "cuMemcpyAsync" },
	{ 307, "cuLaunchKernel" },
	{ 318, "cuMemcpyPeer" },
	{ 319, "cuMemcpyPeerAsync" },
	{ 320, "cuMemcpy3DPeer" },
	{ 321, "cuMemcpy3DPeerAsync" },
	{ 397, "cuMemcpyHtoD_v2_ptds" },
	{ 398, "cuMemcpyDtoH_v2_ptds" },
	{ 399, "cuMemcpyDtoD_v2_ptds" },
	{ 400, "cuMemcpyDtoA_v2_ptds" },
	{ 401, "cuMemcpyAtoD_v2_ptds" },
	{ 402, "cuMemcpyHtoA_v2_ptds" },
	{ 403, "cuMemcpyAtoH_v2_ptds" },
	{ 404, "cuMemcpyAtoA_v2_ptds" },
	{ 405, "cuMemcpy2D_v2_ptds" },
	{ 406, "cuMemcpy2DUnaligned_v2_ptds" },
	{ 407, "cuMemcpy3D_v2_ptds" },
	{ 408, "cuMemcpy_ptds" },
	{ 409, "cuMemcpyPeer_ptds" },
	{ 410, "cuMemcpy3DPeer_ptds" },
	{ 411, "cuMemsetD8_v2_ptds" },
	{ 412, "cuMemsetD16_v2_ptds" },
	{ 413, "cuMemsetD32_v2_ptds" },
	{ 414, "cuMemsetD2D8_v2_ptds" },
	{ 415, "cuMemsetD2D16_v2_ptds" },
	{ 416, "cuMemsetD2D32_v2_ptds" },
	{ 418, "cuMemcpyAsync_ptsz" },
	{ 419, "cuMemcpyHtoAAsync_v2_ptsz" },
	{ 420, "cuMemcpyAtoHAsync_v2_ptsz" },
	{ 421, "cuMemcpyHtoDAsync_v2_ptsz" },
	{ 422, "cuMemcpyDtoHAsync_v2_ptsz" },
	{ 423, "cuMemcpyDtoDAsync_v2_ptsz" },
	{ 424, "cuMemcpy2DAsync_v2_ptsz" },
	{ 425, "cuMemcpy3DAsync_v2_ptsz" },
	{ 426, "cuMemcpyPeerAsync_ptsz" },
	{ 427, "cuMemcpy3DPeerAsync_ptsz" },
	{ 428, "cuMemsetD8Async_ptsz" },
	{ 429, "cuMemsetD16Async_ptsz" },
	{ 430, "cuMemsetD32Async_ptsz" },
	{ 431, "cuMemsetD2D8Async_ptsz" },
	{ 432, "cuMemsetD2D16Async_ptsz" },
	{ 433, "cuMemsetD2D32Async_ptsz" },
	{ 442, "cuLaunchKernel_ptsz" },
	{ 477, "cuLaunchCooperativeKernel" },
	{ 478, "cuLaunchCooperativeKernel_ptsz" },
	{ 480, "cuLaunchCooperativeKernelMultiDevice" },
	{ 514, "cuGraphLaunch" },
	{ 515, "cuGraphLaunch_ptsz" },
	{ 652, "cuLaunchKernelEx" },
	{ 653, "cuLaunchKernelEx_ptsz" },
	{ 776, "cuMemcpyBatchAsync" },
	{ 777, "cuMemcpyBatchAsync_ptsz" },
	{ 778, "cuMemcpy3DBatchAsync" },
	{ 779, "cuMemcpy3DBatchAsync_ptsz" },
	{ 796, "cuMemcpyBatchAsync_v2" },
	{ 797, "cuMemcpyBatchAsync_v2_ptsz" },
	{ 798, "cuMemcpy3DBatchAsync_v2" },
	{ 799, "cuMemcpy3DBatchAsync_v2_ptsz" },
	{ 837, "cuMemcpyWithAttributesAsync" },
	{ 838, "cuMemcpyWithAttributesAsync_ptsz" },
	{ 839, "cuMemcpy3DWithAttributesAsync" },
	{ 840, "cuMemcpy3DWithAttributesAsync_ptsz" },
};

const char *gpu_driver__function(u32 cbid)
{
	u32 n = ARRAY_LEN(functions), at = SEARCH(n, i, functions[i].cbid < cbid);

	return at < n && functions[at].cbid == cbid ? functions[at].name : NULL;
}

const char *gpu_work__operation(const struct gpu_work *w)
{
	static const char *const copies[] = {
		[GPU_COPY_UNKNOWN] = "[CUDA memcpy Unknown]",	    [GPU_COPY_HTOD] = "[CUDA memcpy Host-to-Device]",
		[GPU_COPY_DTOH] = "[CUDA memcpy Device-to-Host]",   [GPU_COPY_HTOA] = "[CUDA memcpy Host-to-Array]",
		[GPU_COPY_ATOH] = "[CUDA memcpy Array-to-Host]",    [GPU_COPY_ATOA] = "[CUDA memcpy Array-to-Array]",
		[GPU_COPY_ATOD] = "[CUDA memcpy Array-to-Device]",  [GPU_COPY_DTOA] = "[CUDA memcpy Device-to-Array]",
		[GPU_COPY_DTOD] = "[CUDA memcpy Device-to-Device]", [GPU_COPY_HTOH] = "[CUDA memcpy Host-to-Host]",
		[GPU_COPY_PTOP] = "[CUDA memcpy Peer-to-Peer]",
	};

	switch (w->kind) {
	case GPU_COPY:
		return copies[w->copy_kind < ARRAY_LEN(copies) ? w->copy_kind : GPU_COPY_UNKNOWN];
	case GPU_SET:
		return "[CUDA memset]";
	case GPU_GRAPH:
		return "[CUDA graph]";
	default:
		return "[CUDA kernel]";
	}
}
