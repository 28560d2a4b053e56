// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records calls of cuDNN, and what is set in descriptors. cudnn_ops.h, cudnn_cnn.h and cudnn_graph.h declare them. */
#include "core/args.h"
#include "cudnn.h"

#define WITHIN_CUDNN FAMILY_BIT(EVENT_FAMILY(ID_cudnn_call))

static __always_inline u64 on_stack(u64 sp, u32 number)
{
	u64 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (const void *)(sp + 8 + 8 * number));
	return v;
}

enum {
	FORWARD,
	FORWARD_BIAS,
	BACKWARD_DATA,
	BACKWARD_FILTER,
	EXECUTE,
};

/* Which of these arguments are the descriptors of input, filter and result */
enum {
	NONE,
	A3,
	A5,
	A12,
	A17,
};

static const volatile struct {
	u8 operation, x, w, y;
} called[8] = {
	[FORWARD] = { CUDNN_CONVOLUTION, A3, A5, A12 },	      [FORWARD_BIAS] = { CUDNN_CONVOLUTION, A3, A5, A17 },
	[BACKWARD_DATA] = { CUDNN_CONVOLUTION, A12, A3, A5 }, [BACKWARD_FILTER] = { CUDNN_CONVOLUTION, A3, A12, A5 },
	[EXECUTE] = { CUDNN_EXECUTE, NONE, NONE, NONE },
};

/*
 * cudnnConvolutionForward(handle, alpha, x, X, w, W, convolution, algorithm, workspace, bytes, beta, y, Y)
 * cudnnConvolutionBiasActivationForward(.., alpha2, z, Z, bias, Bias, activation, y, Y)
 * cudnnConvolutionBackwardData(handle, alpha, w, W, dy, DY, .., beta, dx, DX)
 * cudnnConvolutionBackwardFilter(handle, alpha, x, X, dy, DY, .., beta, dw, DW)
 * cudnnBackendExecute(handle, plan, variants)
 *
 * The globs are those functions that give the device work, and some that take long.
 */
SPAN__PROGRAM(cudnn_call,
	      "span/libcudnn.so:"
	      "cudnnConvolutionForward;"
	      "cudnnConvolutionBiasActivationForward;"
	      "cudnnConvolutionBackwardData;"
	      "cudnnConvolutionBackwardFilter;"
	      "cudnnBackendExecute;"
	      "cudnn[!G]*Forward*,cudnn[!G]*Backward*,cudnn[AORST]*Tensor,cudnnTransform*,cudnnIm2Col,cudnnRNN[FB]*,"
	      "cudnnMultiHeadAttn*,cudnnCTCLoss*,cudnnFusedOpsExecute,cudnnMakeFusedOpsPlan,cudnnFind*,cudnnCreate,"
	      "cudnnDestroy,cudnnBackendFinalize,cudnnBackendPopulateCudaGraph,cudnnBackendUpdateCudaGraph",
	      cudnn_call, SPAN__NOTHING, WITHIN_CUDNN, SPAN__NOTHING)
{
	struct args a = args__read(ctx);
	u64 v[8] = { [A3] = a.a3, [A5] = a.a5, [A12] = on_stack(a.sp, 5), [A17] = on_stack(a.sp, 10) };

	e->handle = a.a1;
	e->operation = called[group & 7].operation;
	e->x = v[called[group & 7].x & 7];
	e->w = v[called[group & 7].w & 7];
	e->y = v[called[group & 7].y & 7];
	if (group == EXECUTE)
		e->plan = a.a2;
}

enum {
	TENSOR_4D,
	TENSOR_4D_EX,
	TENSOR_ND,
	TENSOR_ND_EX,
	FILTER_4D,
	FILTER_ND,
	SET_ATTRIBUTE,
	GET_ATTRIBUTE,
	DESTROY,
};

static __always_inline void read_numbers(struct cudnn_descriptor *e, u32 count, u64 where)
{
	u32 n = count < CUDNN_VALUES ? count : CUDNN_VALUES; /* a power of two minus 1, so that a mask bounds it */

	barrier_var(n);
	e->count = count;
	bpf_probe_read_user(&e->value_0, (n & CUDNN_VALUES) * sizeof(s64), (const void *)where);
}

/* By group: which argument, from 0, is the type, the number of sizes or the first size, and the address of sizes */
static const volatile struct {
	u8 type, sizes, at;
} described[8] = {
	[TENSOR_4D] = { 2, 3, 0 },    [TENSOR_4D_EX] = { 1, 2, 0 }, [TENSOR_ND] = { 1, 2, 3 },
	[TENSOR_ND_EX] = { 2, 3, 4 }, [FILTER_4D] = { 1, 3, 0 },    [FILTER_ND] = { 1, 3, 4 },
};

/* The sizes of the older functions are int. */
static __always_inline void describe(struct cudnn_descriptor *e, const struct args *a, u32 group)
{
	u64 v[8] = { a->a1, a->a2, a->a3, a->a4, a->a5, a->a6, on_stack(a->sp, 0) };
	u32 at = described[group & 7].at & 7, sizes = described[group & 7].sizes & 3, n = v[sizes];
	s32 read[8] = {};

	e->type = v[described[group & 7].type & 7];
	if (at) {
		e->count = n;
		n = n < 7 ? n : 7;
		barrier_var(n);
		bpf_probe_read_user(read, (n & 7) * sizeof(*read), (const void *)v[at]);
	} else {
		e->count = 4;
		read[0] = v[sizes];
		read[1] = v[sizes + 1];
		read[2] = v[sizes + 2];
		read[3] = v[sizes + 3];
	}
	e->value_0 = read[0];
	e->value_1 = read[1];
	e->value_2 = read[2];
	e->value_3 = read[3];
	e->value_4 = read[4];
	e->value_5 = read[5];
	e->value_6 = read[6];
}

/*
 * Of all attributes, those that lead from a plan to the sizes of its tensors, and others in their ranges. A global
 * function, so that the verifier does not follow each comparison to the program's end.
 */
__weak __noinline int cudnn__is_followed(u32 attribute)
{
	return attribute == CUDNN_TENSOR_DIMENSIONS || attribute == CUDNN_TENSOR_TYPE ||
	       attribute - CUDNN_FORWARD_W <= CUDNN_BACKWARD_FILTER_DY - CUDNN_FORWARD_W ||
	       attribute == CUDNN_GRAPH_OPERATIONS || attribute == CUDNN_ENGINE_GRAPH ||
	       attribute - CUDNN_MATMUL_A <= CUDNN_MATMUL_C - CUDNN_MATMUL_A || attribute == CUDNN_HEURISTICS_GRAPH ||
	       attribute == CUDNN_CONFIGURATION_ENGINE || attribute == CUDNN_PLAN_CONFIGURATION;
}

/*
 * cudnnSetTensor4dDescriptor(tensor, format, type, n, c, h, w)
 * cudnnSetTensor4dDescriptorEx(tensor, type, n, c, h, w, strides..)
 * cudnnSetTensorNdDescriptor(tensor, type, dimensions, sizes *, strides *)
 * cudnnSetTensorNdDescriptorEx(tensor, format, type, dimensions, sizes *)
 * cudnnSetFilter4dDescriptor(filter, type, format, k, c, h, w)
 * cudnnSetFilterNdDescriptor(filter, type, format, dimensions, sizes *)
 * cudnnBackendSetAttribute(descriptor, attribute, type of elements, count, elements *)
 * cudnnBackendGetAttribute(descriptor, attribute, type of elements, requested, count *, elements *): of heuristics'
 *	results, the elements are the caller's descriptors
 * cudnnBackendDestroyDescriptor(descriptor)
 */
ENTRY(cudnn_describe, "libcudnn.so:"
		      "cudnnSetTensor4dDescriptor;"
		      "cudnnSetTensor4dDescriptorEx;"
		      "cudnnSetTensorNdDescriptor;"
		      "cudnnSetTensorNdDescriptorEx;"
		      "cudnnSetFilter4dDescriptor;"
		      "cudnnSetFilterNdDescriptor;"
		      "cudnnBackendSetAttribute;"
		      "cudnnBackendGetAttribute;"
		      "cudnnBackendDestroyDescriptor")
{
	u64 cookie = bpf_get_attach_cookie(ctx), group = cookie >> COOKIE_GROUP_SHIFT;
	struct args a = args__read(ctx);
	struct cudnn_descriptor e = {};

	if (!probe__is_selected(cookie))
		return 0;
	e.descriptor = a.a1;
	e.attribute = group == DESTROY ? CUDNN_DESTROYED : group >= SET_ATTRIBUTE ? a.a2 : CUDNN_DESCRIBED;
	if (group == GET_ATTRIBUTE ? e.attribute != CUDNN_HEURISTICS_RESULTS :
				     group == SET_ATTRIBUTE && !cudnn__is_followed(e.attribute))
		return 0;
	event__init(&e.event, ID_cudnn_descriptor, cookie, bpf_ktime_get_ns());
	if (group < SET_ATTRIBUTE)
		describe(&e, &a, group);
	else
		read_numbers(&e, group == DESTROY ? 0 : a.a4, group == GET_ATTRIBUTE ? a.a6 : a.a5);
	emit(&e, sizeof(e));
	return 0;
}
