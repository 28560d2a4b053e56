/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of NVIDIA's cuDNN, and what its descriptors state of sizes. Functions and numbers are those of cudnn_ops.h,
 * cudnn_cnn.h and cudnn_graph.h of cuDNN 9.28; those of cuDNN 8 are the same.
 *
 * A call has the descriptors of its tensors, whose sizes are in the latest cudnn_descriptor of the same process and
 * descriptor. user/model/math_cudnn.c joins them.
 */
#pragma once

#include "core/event.h"

FAMILY(cudnn, 0x10, FAMILY_ON_REQUEST, "calls of cuDNN, with the sizes of convolutions and products");

enum cudnn_operation {
	CUDNN_OTHER = 0,
	CUDNN_CONVOLUTION = 1, /* forward, or the gradient of the input or of the filter: x, w and y are described */
	CUDNN_EXECUTE = 2, /* cudnnBackendExecute: plan is described */
};

/* What a descriptor states: cudnnBackendAttributeName_t, and of the older functions numbers beyond these. */
enum cudnn_attribute {
	CUDNN_HEURISTICS_GRAPH = 201,
	CUDNN_HEURISTICS_RESULTS = 202, /* values: engine configurations that the call fills */
	CUDNN_CONFIGURATION_ENGINE = 300,
	CUDNN_PLAN_CONFIGURATION = 401,
	CUDNN_FORWARD_W = 703,
	CUDNN_FORWARD_X = 704,
	CUDNN_FORWARD_Y = 705,
	CUDNN_BACKWARD_DATA_W = 709,
	CUDNN_BACKWARD_DATA_DX = 710,
	CUDNN_BACKWARD_DATA_DY = 711,
	CUDNN_BACKWARD_FILTER_DW = 715,
	CUDNN_BACKWARD_FILTER_X = 716,
	CUDNN_BACKWARD_FILTER_DY = 717,
	CUDNN_GRAPH_OPERATIONS = 801,
	CUDNN_TENSOR_TYPE = 901, /* value_0: an enum cudnn_type */
	CUDNN_TENSOR_DIMENSIONS = 902,
	CUDNN_ENGINE_GRAPH = 1300,
	CUDNN_MATMUL_A = 1520,
	CUDNN_MATMUL_B = 1521,
	CUDNN_MATMUL_C = 1522,
	CUDNN_DESCRIBED = 65536, /* cudnnSetTensor.. and cudnnSetFilter..: type and dimensions */
	CUDNN_DESTROYED = 65537,
};

/* cudnnDataType_t */
enum cudnn_type {
	CUDNN_FLOAT = 0,
	CUDNN_DOUBLE = 1,
	CUDNN_HALF = 2,
	CUDNN_INT8 = 3,
	CUDNN_INT32 = 4,
	CUDNN_INT8X4 = 5,
	CUDNN_UINT8 = 6,
	CUDNN_UINT8X4 = 7,
	CUDNN_INT8X32 = 8,
	CUDNN_BFLOAT16 = 9,
	CUDNN_INT64 = 10,
	CUDNN_BOOLEAN = 11,
	CUDNN_FP8_E4M3 = 12,
	CUDNN_FP8_E5M2 = 13,
};

struct cudnn_call {
	struct call call;
	u64 handle UNIT(hex) DOC("of cuDNN; of calls without sizes, their first argument");
	u64 x UNIT(hex) DOC("of a convolution: descriptor of the input or its gradient");
	u64 w UNIT(hex) DOC("of the filter or its gradient");
	u64 y UNIT(hex) DOC("of the result or its gradient");
	u64 plan UNIT(hex) DOC("of cudnnBackendExecute");
	enum cudnn_operation operation;
} EVENT(cudnn_call, 0x1001, "a call of cuDNN");

#define CUDNN_VALUES 15

struct cudnn_descriptor {
	struct event event;
	u64 descriptor UNIT(hex) DOC("its address");
	enum cudnn_attribute attribute DOC("what was set; numbers without a name are not recorded");
	enum cudnn_type type DOC("of the elements, where CUDNN_DESCRIBED was set");
	u64 count DOC("elements of the attribute; the first 15 are recorded");
	s64 value_0 DOC("sizes, or descriptors");
	s64 value_1;
	s64 value_2;
	s64 value_3;
	s64 value_4;
	s64 value_5;
	s64 value_6;
	s64 value_7;
	s64 value_8;
	s64 value_9;
	s64 value_10;
	s64 value_11;
	s64 value_12;
	s64 value_13;
	s64 value_14;
} EVENT(cudnn_descriptor, 0x1002, "a descriptor was set or destroyed");
