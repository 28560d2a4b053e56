/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that blas_calls.c calls, with the parameters that cublas_api.h and cublasLt.h declare. test_real.py
 * compiles the program with NVIDIA's headers instead (-DVENDOR).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef VENDOR
#include <cublasLt.h>
#include <cublas_v2.h>
#define HERE(declarations)
#else
#define HERE(declarations) declarations
#endif

typedef void *handle;
typedef const void *scalar;

/*
 * Each is declared for int and, with _64, for int64_t. NVIDIA's headers declare functions of half and bfloat16 only for
 * C++ (DECLARE_SHORT).
 */
#define DECLARE_(function, suffix, I) int function##suffix PARAMETERS(I);
#define DECLARE_SHORT(function)	      DECLARE_(function, , int) DECLARE_(function, _64, int64_t)
#define DECLARE(function)	      HERE(DECLARE_SHORT(function))
#define LETTERS(function, suffix)          \
	DECLARE(cublasS##function##suffix) \
	DECLARE(cublasD##function##suffix) DECLARE(cublasC##function##suffix) DECLARE(cublasZ##function##suffix)
#define COMPLEX(function, suffix) DECLARE(cublasC##function##suffix) DECLARE(cublasZ##function##suffix)

#define PARAMETERS(I)                                                                                          \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, I lda, scalar B, I ldb, scalar beta, \
	 void *C, I ldc)
LETTERS(gemm, _v2)
COMPLEX(gemm3m, )
DECLARE_SHORT(cublasHgemm)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                          \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, I lda, scalar B, I ldb, scalar beta, \
	 void *C, I ldc, I batch)
LETTERS(gemmBatched, )
DECLARE_SHORT(cublasHgemmBatched)
DECLARE(cublasCgemm3mBatched)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                           \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, I lda, long long sa, scalar B, I ldb, \
	 long long sb, scalar beta, void *C, I ldc, long long sc, I batch)
LETTERS(gemmStridedBatched, )
DECLARE_SHORT(cublasHgemmStridedBatched)
DECLARE(cublasCgemm3mStridedBatched)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                             \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, int at, I lda, scalar B, int bt, I ldb, \
	 scalar beta, void *C, int ct, I ldc)
DECLARE(cublasSgemmEx)
DECLARE(cublasCgemmEx)
DECLARE(cublasCgemm3mEx)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                             \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, int at, I lda, scalar B, int bt, I ldb, \
	 scalar beta, void *C, int ct, I ldc, int compute, int algorithm)
DECLARE(cublasGemmEx)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                             \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, int at, I lda, scalar B, int bt, I ldb, \
	 scalar beta, void *C, int ct, I ldc, I batch, int compute, int algorithm)
DECLARE(cublasGemmBatchedEx)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                            \
	(handle h, int ta, int tb, I m, I n, I k, scalar alpha, scalar A, int at, I lda, long long sa, scalar B, \
	 int bt, I ldb, long long sb, scalar beta, void *C, int ct, I ldc, long long sc, I batch, int compute,   \
	 int algorithm)
DECLARE(cublasGemmStridedBatchedEx)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                  \
	(handle h, int side, int uplo, I m, I n, scalar alpha, scalar A, I lda, scalar B, I ldb, scalar beta, void *C, \
	 I ldc)
LETTERS(symm, _v2)
COMPLEX(hemm, _v2)
#undef PARAMETERS
#define PARAMETERS(I) \
	(handle h, int uplo, int trans, I n, I k, scalar alpha, scalar A, I lda, scalar beta, void *C, I ldc)
LETTERS(syrk, _v2)
COMPLEX(herk, _v2)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                  \
	(handle h, int uplo, int trans, I n, I k, scalar alpha, scalar A, int at, I lda, scalar beta, void *C, int ct, \
	 I ldc)
DECLARE(cublasCsyrkEx)
DECLARE(cublasCherk3mEx)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                          \
	(handle h, int uplo, int trans, I n, I k, scalar alpha, scalar A, I lda, scalar B, I ldb, scalar beta, \
	 void *C, I ldc)
LETTERS(syr2k, _v2)
COMPLEX(her2k, _v2)
LETTERS(syrkx, )
COMPLEX(herkx, )
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                 \
	(handle h, int side, int uplo, int trans, int diag, I m, I n, scalar alpha, scalar A, I lda, scalar B, I ldb, \
	 void *C, I ldc)
LETTERS(trmm, _v2)
#undef PARAMETERS
#define PARAMETERS(I) \
	(handle h, int side, int uplo, int trans, int diag, I m, I n, scalar alpha, scalar A, I lda, void *B, I ldb)
LETTERS(trsm, _v2)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                \
	(handle h, int side, int uplo, int trans, int diag, I m, I n, scalar alpha, scalar A, I lda, void *B, I ldb, \
	 I batch)
LETTERS(trsmBatched, )
#undef PARAMETERS
#define PARAMETERS(I) \
	(handle h, int trans, I m, I n, scalar alpha, scalar A, I lda, scalar x, I incx, scalar beta, void *y, I incy)
LETTERS(gemv, _v2)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                  \
	(handle h, int trans, I m, I n, scalar alpha, scalar A, I lda, scalar x, I incx, scalar beta, void *y, I incy, \
	 I batch)
LETTERS(gemvBatched, )
DECLARE_SHORT(cublasHSHgemvBatched)
DECLARE_SHORT(cublasTSTgemvBatched)
#undef PARAMETERS
#define PARAMETERS(I)                                                                                                \
	(handle h, int trans, I m, I n, scalar alpha, scalar A, I lda, long long sa, scalar x, I incx, long long sx, \
	 scalar beta, void *y, I incy, long long sy, I batch)
LETTERS(gemvStridedBatched, )
DECLARE_SHORT(cublasHSSgemvStridedBatched)
DECLARE_SHORT(cublasTSSgemvStridedBatched)
#undef PARAMETERS
#define PARAMETERS(I) (handle h, I m, I n, scalar alpha, scalar x, I incx, scalar y, I incy, void *A, I lda)
DECLARE(cublasSger_v2)
DECLARE(cublasDger_v2)
COMPLEX(geru, _v2)
COMPLEX(gerc, _v2)
#undef PARAMETERS
#define PARAMETERS(I) \
	(handle h, int uplo, I n, scalar alpha, scalar A, I lda, scalar x, I incx, scalar beta, void *y, I incy)
LETTERS(symv, _v2)
COMPLEX(hemv, _v2)
#undef PARAMETERS
#define PARAMETERS(I) (handle h, I n, scalar alpha, scalar x, I incx, void *y, I incy)
DECLARE(cublasSaxpy_v2)
#undef PARAMETERS

#ifndef VENDOR
int cublasSetMathMode(handle h, int mode);
int cublasCreate_v2(handle *h);

typedef handle cublasLtMatrixLayout_t, cublasLtMatmulDesc_t;
int cublasLtMatrixLayoutCreate(handle *out, int type, uint64_t rows, uint64_t columns, int64_t leading);
int cublasLtMatrixLayoutSetAttribute(handle layout, int attribute, const void *value, size_t size);
int cublasLtMatmulDescCreate(handle *out, int compute, int scale);
int cublasLtMatmulDescSetAttribute(handle desc, int attribute, const void *value, size_t size);
int cublasLtMatmul(handle h, handle desc, scalar alpha, scalar A, handle a, scalar B, handle b, scalar beta, scalar C,
		   handle c, void *D, handle d, scalar algorithm, void *workspace, size_t bytes, handle stream);
#endif
