/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which parameter of which function of cuBLAS is which field of the event. The functions of a form have the same
 * parameters; each form has 16 groups of functions, by the letter in the name (S, D, C, Z, H, none, T and F for
 * products of bfloat16 and half that are computed in float), and with 32-bit or 64-bit integers (_64).
 */
#pragma once

#include "core/types.h"

/*
 * The numbers that a form consists of: positions of arguments, which continue on the stack behind the registers, and
 * constants. Without their upper bits, those of registers and constants differ.
 */
enum {
	ARGS_IN_REGISTERS = 6,
	ARGS_END = 24,
	ZERO = ARGS_END,
	ONE,
	LETTER_TYPE, /* what the letter in the function's name states */
	LETTER_COMPUTE,
	SLOTS = 16,
};

enum {
	LETTER_BITS = 3,
	WIDE = 1 << LETTER_BITS,
	FORM_SHIFT = 4,
};

/* Each number but the operation is the position of an argument, or one of the constants. */
struct form {
	u8 operation;
	u8 m, n, k, batch;
	u8 transa, transb, side;
	u8 a_type, b_type, c_type, compute;
};

#define LETTERS(s, d, c, z, h, none, t, f) s ";" d ";" c ";" z ";" h ";" none ";" t ";" f ";"
#define SDCZ(function, W) \
	LETTERS("cublasS" function W, "cublasD" function W, "cublasC" function W, "cublasZ" function W, "", "", "", "")
/* The complex functions of the second name are those for hermitian matrices. */
#define SDCZ_HERMITIAN(function, hermitian, W)                                                           \
	LETTERS("cublasS" function W, "cublasD" function W, "cublasC" function W ",cublasC" hermitian W, \
		"cublasZ" function W ",cublasZ" hermitian W, "", "", "", "")
#define ONLY(functions) LETTERS("", "", "", "", "", functions, "", "")
#define GEMVS(batches, W)                                                                                           \
	LETTERS("cublasSgemv" batches W, "cublasDgemv" batches W, "cublasCgemv" batches W, "cublasZgemv" batches W, \
		"", "", "cublasTSSgemv" batches W ",cublasTSTgemv" batches W,                                       \
		"cublasHSHgemv" batches W ",cublasHSSgemv" batches W)

#define GEMM(W)                                                                                \
	LETTERS("cublasSgemm_v2" W, "cublasDgemm_v2" W, "cublasCgemm_v2" W ",cublasCgemm3m" W, \
		"cublasZgemm_v2" W ",cublasZgemm3m" W, "cublasHgemm" W, "", "", "")
#define GEMM_BATCHED(W)                                                                                           \
	LETTERS("cublasSgemmBatched" W, "cublasDgemmBatched" W, "cublasCgemmBatched" W ",cublasCgemm3mBatched" W, \
		"cublasZgemmBatched" W, "cublasHgemmBatched" W, "", "", "")
#define GEMM_STRIDED(W)                                                                                        \
	LETTERS("cublasSgemmStridedBatched" W, "cublasDgemmStridedBatched" W,                                  \
		"cublasCgemmStridedBatched" W ",cublasCgemm3mStridedBatched" W, "cublasZgemmStridedBatched" W, \
		"cublasHgemmStridedBatched" W, "", "", "")
#define GEMM_TYPED(W)	   LETTERS("cublasSgemmEx" W, "", "cublasCgemmEx" W ",cublasCgemm3mEx" W, "", "", "", "", "")
#define GEMM_EX(W)	   ONLY("cublasGemmEx" W)
#define GEMM_BATCHED_EX(W) ONLY("cublasGemmBatchedEx" W)
#define GEMM_STRIDED_EX(W) ONLY("cublasGemmStridedBatchedEx" W)
#define SYMM(W)		   SDCZ_HERMITIAN("symm_v2", "hemm_v2", W)
#define SYRK(W)		   SDCZ_HERMITIAN("syrk_v2", "herk_v2", W)
#define SYRK_TYPED(W)                                                                                               \
	LETTERS("", "", "cublasCsyrkEx" W ",cublasCsyrk3mEx" W ",cublasCherkEx" W ",cublasCherk3mEx" W, "", "", "", \
		"", "")
#define SYR2K(W)	SDCZ_HERMITIAN("syr2k_v2", "her2k_v2", W)
#define SYRKX(W)	SDCZ_HERMITIAN("syrkx", "herkx", W)
#define TRMM(W)		SDCZ("trmm_v2", W)
#define TRSM(W)		SDCZ("trsm_v2", W)
#define TRSM_BATCHED(W) SDCZ("trsmBatched", W)
#define GEMV(W)		SDCZ("gemv_v2", W)
#define GEMV_BATCHED(W) GEMVS("Batched", W)
#define GEMV_STRIDED(W) GEMVS("StridedBatched", W)
#define GER(W)                                                                                \
	LETTERS("cublasSger_v2" W, "cublasDger_v2" W, "cublasCgeru_v2" W ",cublasCgerc_v2" W, \
		"cublasZgeru_v2" W ",cublasZgerc_v2" W, "", "", "", "")
#define SYMV(W)	     SDCZ_HERMITIAN("symv_v2", "hemv_v2", W)
#define LT_MATMUL(W) ONLY("cublasLtMatmul" W)

#define CREATE(W) ONLY("cublasCreate_v2" W)

#define SIZES(m_, n_, k_)      .m = m_, .n = n_, .k = k_
#define TRANS(a, b)	       .transa = a, .transb = b
#define TYPES(a, b, c, number) .a_type = a, .b_type = b, .c_type = c, .compute = number
#define SAME_TYPE	       TYPES(LETTER_TYPE, LETTER_TYPE, LETTER_TYPE, LETTER_COMPUTE)
#define SIDE(number)	       .side = number
#define BATCH(number)	       .batch = number
#define NO_TRANS	       TRANS(ZERO, ZERO)
#define NO_SIDE		       SIDE(ZERO)

/*
 * Positions count from 0, the handle.
 *	gemm(handle, transa, transb, m, n, k, alpha, A, [type], lda, [stride], B, [type], ldb, [stride], beta, C,
 *	     [type], ldc, [stride], [batch], [compute, algorithm])
 *	syrk(handle, uplo, trans, n, k, alpha, A, [type], lda, [B, ldb], beta, C, [type], ldc)
 *	symm(handle, side, uplo, m, n, ..)
 *	trmm, trsm(handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb, [batch or C, ldc])
 *	gemv(handle, trans, m, n, alpha, A, lda, [stride], x, incx, [stride], beta, y, incy, [stride], [batch])
 *	ger(handle, m, n, ..), symv(handle, uplo, n, ..)
 */
#define FORMS(FORM)                                                                                                   \
	FORM(GEMM, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(ONE), TRANS(1, 2), SAME_TYPE, NO_SIDE)                          \
	FORM(GEMM_BATCHED, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(14), TRANS(1, 2), SAME_TYPE, NO_SIDE)                   \
	FORM(GEMM_STRIDED, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(17), TRANS(1, 2), SAME_TYPE, NO_SIDE)                   \
	FORM(GEMM_TYPED, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(ONE), TRANS(1, 2), TYPES(8, 11, 15, LETTER_COMPUTE),      \
	     NO_SIDE)                                                                                                 \
	FORM(GEMM_EX, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(ONE), TRANS(1, 2), TYPES(8, 11, 15, 17), NO_SIDE)            \
	FORM(GEMM_BATCHED_EX, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(17), TRANS(1, 2), TYPES(8, 11, 15, 18), NO_SIDE)     \
	FORM(GEMM_STRIDED_EX, CUBLAS_GEMM, SIZES(3, 4, 5), BATCH(20), TRANS(1, 2), TYPES(8, 12, 17, 21), NO_SIDE)     \
	FORM(SYMM, CUBLAS_SYMM, SIZES(3, 4, ZERO), BATCH(ONE), NO_TRANS, SAME_TYPE, SIDE(1))                          \
	FORM(SYRK, CUBLAS_SYRK, SIZES(ZERO, 3, 4), BATCH(ONE), TRANS(2, ZERO), SAME_TYPE, NO_SIDE)                    \
	FORM(SYRK_TYPED, CUBLAS_SYRK, SIZES(ZERO, 3, 4), BATCH(ONE), TRANS(2, ZERO), TYPES(7, 7, 11, LETTER_COMPUTE), \
	     NO_SIDE)                                                                                                 \
	FORM(SYR2K, CUBLAS_SYR2K, SIZES(ZERO, 3, 4), BATCH(ONE), TRANS(2, ZERO), SAME_TYPE, NO_SIDE)                  \
	FORM(SYRKX, CUBLAS_SYRKX, SIZES(ZERO, 3, 4), BATCH(ONE), TRANS(2, ZERO), SAME_TYPE, NO_SIDE)                  \
	FORM(TRMM, CUBLAS_TRMM, SIZES(5, 6, ZERO), BATCH(ONE), TRANS(3, ZERO), SAME_TYPE, SIDE(1))                    \
	FORM(TRSM, CUBLAS_TRSM, SIZES(5, 6, ZERO), BATCH(ONE), TRANS(3, ZERO), SAME_TYPE, SIDE(1))                    \
	FORM(TRSM_BATCHED, CUBLAS_TRSM, SIZES(5, 6, ZERO), BATCH(12), TRANS(3, ZERO), SAME_TYPE, SIDE(1))             \
	FORM(GEMV, CUBLAS_GEMV, SIZES(2, 3, ZERO), BATCH(ONE), TRANS(1, ZERO), SAME_TYPE, NO_SIDE)                    \
	FORM(GEMV_BATCHED, CUBLAS_GEMV, SIZES(2, 3, ZERO), BATCH(12), TRANS(1, ZERO), SAME_TYPE, NO_SIDE)             \
	FORM(GEMV_STRIDED, CUBLAS_GEMV, SIZES(2, 3, ZERO), BATCH(15), TRANS(1, ZERO), SAME_TYPE, NO_SIDE)             \
	FORM(GER, CUBLAS_GER, SIZES(1, 2, ZERO), BATCH(ONE), NO_TRANS, SAME_TYPE, NO_SIDE)                            \
	FORM(SYMV, CUBLAS_SYMV, SIZES(ZERO, 2, ZERO), BATCH(ONE), NO_TRANS, SAME_TYPE, NO_SIDE)                       \
	FORM(LT_MATMUL, CUBLAS_LT_MATMUL, SIZES(ZERO, ZERO, ZERO), BATCH(ZERO), NO_TRANS,                             \
	     TYPES(ZERO, ZERO, ZERO, ZERO), NO_SIDE)                                                                  \
	FORM(CREATE, CUBLAS_CREATE, SIZES(ZERO, ZERO, ZERO), BATCH(ZERO), NO_TRANS, TYPES(ZERO, ZERO, ZERO, ZERO),    \
	     NO_SIDE)

#define FORM_FUNCTIONS(name, ...)	  name("") name("_64")
#define FORM_ENTRY(name, operation_, ...) { .operation = operation_, __VA_ARGS__ },
