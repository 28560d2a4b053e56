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
	u64 last = group == FORWARD_BIAS ? on_stack(a.sp, 10) : group <= BACKWARD_FILTER ? on_stack(a.sp, 5) : 0;

	e->handle = a.a1;
	if (group <= BACKWARD_FILTER) {
		e->operation = CUDNN_CONVOLUTION;
		e->x = group == BACKWARD_DATA ? last : a.a3;
		e->w = group == BACKWARD_DATA ? a.a3 : group == BACKWARD_FILTER ? last : a.a5;
		e->y = group <= FORWARD_BIAS ? last : a.a5;
	}
	if (group == EXECUTE) {
		e->operation = CUDNN_EXECUTE;
		e->plan = a.a2;
	}
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

static __always_inline void read_numbers(struct cudnn_descriptor *e, u64 where)
{
	u32 n = e->count < CUDNN_VALUES ? e->count : CUDNN_VALUES;

	barrier_var(n);
	bpf_probe_read_user(&e->value_0, (n & (2 * CUDNN_VALUES - 1)) * sizeof(s64), (const void *)where);
}

/* Dimensions of the older functions are int. */
static __always_inline void read_dimensions(struct cudnn_descriptor *e, u64 where)
{
	s32 v[8] = {};
	u32 n = e->count < 8 ? e->count : 8;

	barrier_var(n);
	bpf_probe_read_user(v, (n & 15) * sizeof(*v), (const void *)where);
	e->value_0 = v[0];
	e->value_1 = v[1];
	e->value_2 = v[2];
	e->value_3 = v[3];
	e->value_4 = v[4];
	e->value_5 = v[5];
	e->value_6 = v[6];
	e->value_7 = v[7];
}

/* Of all attributes, those that lead from a plan to the sizes of its tensors, and others in their ranges */
static __always_inline bool is_followed(u32 attribute)
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
				     group == SET_ATTRIBUTE && !is_followed(e.attribute))
		return 0;
	event__init(&e.event, ID_cudnn_descriptor, cookie, bpf_ktime_get_ns());
	if (group < SET_ATTRIBUTE) {
		bool is_4d = group == TENSOR_4D || group == TENSOR_4D_EX || group == FILTER_4D;

		e.type = group == TENSOR_4D || group == TENSOR_ND_EX ? a.a3 : a.a2;
		e.count = is_4d ? 4 : group == TENSOR_ND ? a.a3 : a.a4;
		if (is_4d) {
			e.value_0 = (s32)(group == TENSOR_4D_EX ? a.a3 : a.a4);
			e.value_1 = (s32)(group == TENSOR_4D_EX ? a.a4 : a.a5);
			e.value_2 = (s32)(group == TENSOR_4D_EX ? a.a5 : a.a6);
			e.value_3 = (s32)(group == TENSOR_4D_EX ? a.a6 : on_stack(a.sp, 0));
		} else {
			read_dimensions(&e, group == TENSOR_ND ? a.a4 : a.a5);
		}
	} else if (group != DESTROY) {
		e.count = a.a4;
		read_numbers(&e, group == SET_ATTRIBUTE ? a.a5 : a.a6);
		e.type = e.attribute == CUDNN_TENSOR_TYPE ? (u32)e.value_0 : 0;
	}
	emit(&e, sizeof(e));
	return 0;
}
