/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of NVIDIA's cuBLAS and cuBLASLt, with the sizes of their matrices. Functions and numbers are those of
 * cublas_api.h, cublasLt.h and library_types.h of CUDA 11.8 to 13.1.
 *
 * The event's probe says which function was called. docs/math.md defines the floating-point operations of a call.
 */
#pragma once

#include "core/event.h"

FAMILY(cublas, 0x0f, FAMILY_DEFAULT, "calls of cuBLAS and cuBLASLt, with the sizes of their matrices");

/* What a call computes: the arithmetic depends on it, and which of the sizes are used */
enum cublas_operation {
	CUBLAS_OTHER = 0, /* sizes are not recorded */
	CUBLAS_GEMM = 1, /* m x k times k x n */
	CUBLAS_LT_MATMUL = 2, /* the same, of cublasLtMatmul */
	CUBLAS_SYMM = 3, /* a symmetric or hermitian matrix times m x n, or the reverse */
	CUBLAS_SYRK = 4, /* a triangle of n x k times its transpose */
	CUBLAS_SYR2K = 5, /* the same of two matrices, and both products */
	CUBLAS_SYRKX = 6, /* a triangle of n x k times k x n */
	CUBLAS_TRMM = 7, /* a triangular matrix times m x n, or the reverse */
	CUBLAS_TRSM = 8, /* solves a triangular matrix for m x n */
	CUBLAS_GEMV = 9, /* m x n times a vector */
	CUBLAS_GER = 10, /* a product of two vectors, m x n */
	CUBLAS_SYMV = 11, /* a symmetric or hermitian n x n times a vector */
	CUBLAS_CREATE = 12, /* cublasCreate */
};

/* cudaDataType_t */
enum cublas_type {
	CUBLAS_R_32F = 0,
	CUBLAS_R_64F = 1,
	CUBLAS_R_16F = 2,
	CUBLAS_R_8I = 3,
	CUBLAS_C_32F = 4,
	CUBLAS_C_64F = 5,
	CUBLAS_C_16F = 6,
	CUBLAS_C_8I = 7,
	CUBLAS_R_8U = 8,
	CUBLAS_C_8U = 9,
	CUBLAS_R_32I = 10,
	CUBLAS_C_32I = 11,
	CUBLAS_R_32U = 12,
	CUBLAS_C_32U = 13,
	CUBLAS_R_16BF = 14,
	CUBLAS_C_16BF = 15,
	CUBLAS_R_4I = 16,
	CUBLAS_C_4I = 17,
	CUBLAS_R_4U = 18,
	CUBLAS_C_4U = 19,
	CUBLAS_R_16I = 20,
	CUBLAS_C_16I = 21,
	CUBLAS_R_16U = 22,
	CUBLAS_C_16U = 23,
	CUBLAS_R_64I = 24,
	CUBLAS_C_64I = 25,
	CUBLAS_R_64U = 26,
	CUBLAS_C_64U = 27,
	CUBLAS_R_8F_E4M3 = 28,
	CUBLAS_R_8F_E5M2 = 29,
	CUBLAS_R_8F_UE8M0 = 30,
	CUBLAS_R_6F_E2M3 = 31,
	CUBLAS_R_6F_E3M2 = 32,
	CUBLAS_R_4F_E2M1 = 33,
};

/* cublasComputeType_t; numbers below 64 are a cudaDataType_t, as CUDA 10 had it */
enum cublas_compute {
	CUBLAS_16F = 64,
	CUBLAS_16F_PEDANTIC = 65,
	CUBLAS_32F = 68,
	CUBLAS_32F_PEDANTIC = 69,
	CUBLAS_64F = 70,
	CUBLAS_64F_PEDANTIC = 71,
	CUBLAS_32I = 72,
	CUBLAS_32I_PEDANTIC = 73,
	CUBLAS_32F_FAST_16F = 74,
	CUBLAS_32F_FAST_16BF = 75,
	CUBLAS_32F_FAST_TF32 = 77,
	CUBLAS_32F_EMULATED_16BFX9 = 78,
	CUBLAS_64F_EMULATED_FIXEDPOINT = 79,
};

/* cublasOperation_t */
enum cublas_transpose {
	CUBLAS_N = 0,
	CUBLAS_T = 1,
	CUBLAS_C = 2,
};

/* cublasSideMode_t */
enum cublas_side {
	CUBLAS_LEFT = 0,
	CUBLAS_RIGHT = 1,
};

/* cublasMath_t, without its flag for reduced precision in reductions */
enum cublas_math {
	CUBLAS_MATH_DEFAULT = 0,
	CUBLAS_MATH_TENSOR_OP = 1,
	CUBLAS_MATH_PEDANTIC = 2,
	CUBLAS_MATH_TF32 = 3,
	CUBLAS_MATH_EMULATED_BF16X9 = 4,
	CUBLAS_MATH_UNKNOWN = 255,
};

struct cublas_call {
	struct call call;
	u64 handle UNIT(hex) DOC("of cuBLAS or cuBLASLt");
	s64 m DOC("rows; 0: not recorded, or not used by the operation");
	s64 n DOC("columns");
	s64 k DOC("the size that is summed over");
	s64 batch DOC("how many such operations the call requests");
	enum cublas_operation operation;
	enum cublas_type a_type DOC("of the elements of A");
	enum cublas_type b_type DOC("of the elements of B");
	enum cublas_type c_type DOC("of the result's elements");
	enum cublas_compute compute DOC("as passed, or as the function's name states");
	enum cublas_math math_mode DOC("of the handle; unknown if it was not set while its process was traced");
	enum cublas_transpose transa DOC("is A transposed (T) or also conjugated (C)?");
	enum cublas_transpose transb;
	enum cublas_side side DOC("of the symmetric or triangular matrix");
} EVENT(cublas_call, 0x0f01, "a call of cuBLAS or cuBLASLt");
