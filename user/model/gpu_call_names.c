// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_private.h"
#include "util/array.h"

#include "util/search.h"

#include <string.h>

/* The functions that the shim asks CUPTI for. CUDA never renumbers them. */
struct function {
	u16 cbid;
	const char *name;
};

/* CUPTI_DRIVER_TRACE_CBID_... of cupti_driver_cbid.h, CUDA 13.5 */
static const struct function driver[] = {
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

/* CUPTI_RUNTIME_TRACE_CBID_... of cupti_runtime_cbid.h, CUDA 13.5 */
static const struct function runtime[] = {
	{ 13, "cudaLaunch" },
	{ 31, "cudaMemcpy" },
	{ 32, "cudaMemcpy2D" },
	{ 33, "cudaMemcpyToArray" },
	{ 34, "cudaMemcpy2DToArray" },
	{ 35, "cudaMemcpyFromArray" },
	{ 36, "cudaMemcpy2DFromArray" },
	{ 37, "cudaMemcpyArrayToArray" },
	{ 38, "cudaMemcpy2DArrayToArray" },
	{ 39, "cudaMemcpyToSymbol" },
	{ 40, "cudaMemcpyFromSymbol" },
	{ 41, "cudaMemcpyAsync" },
	{ 42, "cudaMemcpyToArrayAsync" },
	{ 43, "cudaMemcpyFromArrayAsync" },
	{ 44, "cudaMemcpy2DAsync" },
	{ 45, "cudaMemcpy2DToArrayAsync" },
	{ 46, "cudaMemcpy2DFromArrayAsync" },
	{ 47, "cudaMemcpyToSymbolAsync" },
	{ 48, "cudaMemcpyFromSymbolAsync" },
	{ 49, "cudaMemset" },
	{ 50, "cudaMemset2D" },
	{ 51, "cudaMemsetAsync" },
	{ 52, "cudaMemset2DAsync" },
	{ 142, "cudaMemset3D" },
	{ 143, "cudaMemset3DAsync" },
	{ 144, "cudaMemcpy3D" },
	{ 145, "cudaMemcpy3DAsync" },
	{ 160, "cudaMemcpyPeer" },
	{ 161, "cudaMemcpyPeerAsync" },
	{ 162, "cudaMemcpy3DPeer" },
	{ 163, "cudaMemcpy3DPeerAsync" },
	{ 211, "cudaLaunchKernel" },
	{ 213, "cudaLaunch_ptsz" },
	{ 214, "cudaLaunchKernel_ptsz" },
	{ 215, "cudaMemcpy_ptds" },
	{ 216, "cudaMemcpy2D_ptds" },
	{ 217, "cudaMemcpyToArray_ptds" },
	{ 218, "cudaMemcpy2DToArray_ptds" },
	{ 219, "cudaMemcpyFromArray_ptds" },
	{ 220, "cudaMemcpy2DFromArray_ptds" },
	{ 221, "cudaMemcpyArrayToArray_ptds" },
	{ 222, "cudaMemcpy2DArrayToArray_ptds" },
	{ 223, "cudaMemcpyToSymbol_ptds" },
	{ 224, "cudaMemcpyFromSymbol_ptds" },
	{ 225, "cudaMemcpyAsync_ptsz" },
	{ 226, "cudaMemcpyToArrayAsync_ptsz" },
	{ 227, "cudaMemcpyFromArrayAsync_ptsz" },
	{ 228, "cudaMemcpy2DAsync_ptsz" },
	{ 229, "cudaMemcpy2DToArrayAsync_ptsz" },
	{ 230, "cudaMemcpy2DFromArrayAsync_ptsz" },
	{ 231, "cudaMemcpyToSymbolAsync_ptsz" },
	{ 232, "cudaMemcpyFromSymbolAsync_ptsz" },
	{ 233, "cudaMemset_ptds" },
	{ 234, "cudaMemset2D_ptds" },
	{ 235, "cudaMemsetAsync_ptsz" },
	{ 236, "cudaMemset2DAsync_ptsz" },
	{ 243, "cudaMemset3D_ptds" },
	{ 244, "cudaMemset3DAsync_ptsz" },
	{ 245, "cudaMemcpy3D_ptds" },
	{ 246, "cudaMemcpy3DAsync_ptsz" },
	{ 249, "cudaMemcpy3DPeer_ptds" },
	{ 250, "cudaMemcpy3DPeerAsync_ptsz" },
	{ 269, "cudaLaunchCooperativeKernel" },
	{ 270, "cudaLaunchCooperativeKernel_ptsz" },
	{ 272, "cudaLaunchCooperativeKernelMultiDevice" },
	{ 311, "cudaGraphLaunch" },
	{ 312, "cudaGraphLaunch_ptsz" },
	{ 430, "cudaLaunchKernelExC" },
	{ 431, "cudaLaunchKernelExC_ptsz" },
	{ 482, "cudaMemcpyBatchAsync" },
	{ 483, "cudaMemcpyBatchAsync_ptsz" },
	{ 484, "cudaMemcpy3DBatchAsync" },
	{ 485, "cudaMemcpy3DBatchAsync_ptsz" },
	{ 505, "__cudaLaunchKernel" },
	{ 506, "__cudaLaunchKernel_ptsz" },
	{ 509, "cudaMemcpyBatchAsync" },
	{ 510, "cudaMemcpyBatchAsync_ptsz" },
	{ 511, "cudaMemcpy3DBatchAsync" },
	{ 512, "cudaMemcpy3DBatchAsync_ptsz" },
	{ 554, "cudaMemcpyWithAttributesAsync" },
	{ 555, "cudaMemcpyWithAttributesAsync_ptsz" },
	{ 556, "cudaMemcpy3DWithAttributesAsync" },
	{ 557, "cudaMemcpy3DWithAttributesAsync_ptsz" },
};

const char *gpu_call__function(u32 function)
{
	bool is_runtime = function & GPU_CALL_RUNTIME;
	const struct function *functions = is_runtime ? runtime : driver;
	u32 cbid = function & ~GPU_CALL_RUNTIME, n = is_runtime ? ARRAY_LEN(runtime) : ARRAY_LEN(driver);
	u32 at = SEARCH(n, i, functions[i].cbid < cbid);

	return at < n && functions[at].cbid == cbid ? functions[at].name : NULL;
}

enum gpu_request gpu_call__request(u32 function)
{
	const char *name = gpu_call__function(function);

	if (!name)
		return REQUEST_NONE;
	/* cuLaunchKernel, cudaLaunchKernel and __cudaLaunchKernel are one to us */
	name += strspn(name, "_");
	name += strncmp(name, "cuda", 4) ? 2 : 4;
	return !strncmp(name, "Launch", 6)	 ? REQUEST_KERNEL :
	       !strncmp(name, "GraphLaunch", 11) ? REQUEST_GRAPH :
	       !strncmp(name, "Memset", 6)	 ? REQUEST_SET :
						   REQUEST_COPY;
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
