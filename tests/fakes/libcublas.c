// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands for libcublas where calls have to succeed without a GPU. Each function returns 0, or 13
 * (CUBLAS_STATUS_EXECUTION_FAILED) for the handle 0xbad. Parameters after the first are not declared: none is used.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define RETURNS(function)                                \
	int function(void *handle)                       \
	{                                                \
		return handle == (void *)0xbad ? 13 : 0; \
	}
#define BOTH(function)		  RETURNS(function) RETURNS(function##_64)
#define REAL(function, suffix)	  BOTH(cublasS##function##suffix) BOTH(cublasD##function##suffix)
#define COMPLEX(function, suffix) BOTH(cublasC##function##suffix) BOTH(cublasZ##function##suffix)
#define ALL(function, suffix)	  REAL(function, suffix) COMPLEX(function, suffix)

REAL(gemm, _v2)
BOTH(cublasCgemm_v2)
RETURNS(cublasZgemm_v2_64)
COMPLEX(gemm3m, )
BOTH(cublasHgemm)
ALL(gemmBatched, )
BOTH(cublasHgemmBatched)
BOTH(cublasCgemm3mBatched)
ALL(gemmStridedBatched, )
BOTH(cublasHgemmStridedBatched)
BOTH(cublasCgemm3mStridedBatched)
BOTH(cublasSgemmEx)
BOTH(cublasCgemmEx)
BOTH(cublasCgemm3mEx)
BOTH(cublasGemmEx)
BOTH(cublasGemmBatchedEx)
BOTH(cublasGemmStridedBatchedEx)
ALL(symm, _v2)
COMPLEX(hemm, _v2)
ALL(syrk, _v2)
COMPLEX(herk, _v2)
BOTH(cublasCsyrkEx)
BOTH(cublasCsyrk3mEx)
BOTH(cublasCherkEx)
BOTH(cublasCherk3mEx)
ALL(syr2k, _v2)
COMPLEX(her2k, _v2)
ALL(syrkx, )
COMPLEX(herkx, )
ALL(trmm, _v2)
ALL(trsm, _v2)
ALL(trsmBatched, )
ALL(gemv, _v2)
ALL(gemvBatched, )
BOTH(cublasHSHgemvBatched)
BOTH(cublasTSTgemvBatched)
ALL(gemvStridedBatched, )
BOTH(cublasHSSgemvStridedBatched)
BOTH(cublasTSSgemvStridedBatched)
REAL(ger, _v2)
COMPLEX(geru, _v2)
COMPLEX(gerc, _v2)
ALL(symv, _v2)
COMPLEX(hemv, _v2)
BOTH(cublasSaxpy_v2)
RETURNS(cublasSetStream_v2)
RETURNS(cublasSetMathMode)
RETURNS(cublasDestroy_v2)

int cublasCreate_v2(void **handle)
{
	*handle = (void *)0xcb1a5;
	return 0;
}

/* As the real library may, it calls another of its functions: a call within a call, which is not recorded. */
int cublasZgemm_v2(void *handle)
{
	int (*inner)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "cublasDgemm_v2");

	return inner ? inner(handle) : cublasDgemm_v2(handle);
}
