// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Records calls of NVIDIA's libraries that no other family has. The list of names is this file; it was compared with
 * the libraries of CUDA 12.9 and 13 (tests/probes/cudalib/test_names.py).
 */
#include "core/sonde.bpf.h"
#include "cudalib.h"
#include "probes/cublas/cublas.h"
#include "probes/cudnn/cudnn.h"

#define WITHIN_OTHERS                                                                         \
	(FAMILY_BIT(EVENT_FAMILY(ID_cublas_call)) | FAMILY_BIT(EVENT_FAMILY(ID_cudnn_call)) | \
	 FAMILY_BIT(EVENT_FAMILY(ID_cudalib_call)))

#define LIBRARIES                                                                                   \
	"libcufft.so|libcusparse.so|libcusparseLt.so|libcusolver.so|libcusolverMg.so|libcurand.so|" \
	"libnvjpeg.so|libnpp|libnvinfer|libcublas.so"

/* cuBLAS's functions of vectors, of the matrices that family cublas leaves out, and solvers of batches */
#define CUBLAS_FUNCTIONS                                                                             \
	"cublas[SDCZ]axpy_v2*,cublas[SDCZ]copy_v2*,cublas[SDCZ]swap_v2*,cublas[SDCZI]*[ds]scal_v2*," \
	"cublas[SDCZ]scal_v2*,cublas[SDCZ]dot*_v2*,cublas[SDCZ]*nrm2_v2*,cublas[SDCZ]*asum_v2*,"     \
	"cublasI[sdcz]ami*_v2*,cublasI[sdcz]ama*_v2*,cublas[SDCZ]*rot*_v2*,cublas[SDCZ]*geam*,"      \
	"cublas[SDCZ]*dgmm*,cublas[SDCZ]*bmv_v2*,cublas[SDCZ]*pmv_v2*,cublas[SDCZ]tr[ms]v_v2*,"      \
	"cublas[SDCZ]t[bp]sv_v2*,cublas[SDCZ]*pr_v2*,cublas[SDCZ]*pr2_v2*,cublas[SDCZ]syr_v2*,"      \
	"cublas[SDCZ]syr2_v2*,cublas[CZ]her_v2*,cublas[CZ]her2_v2*,cublas[SDCZ]get*Batched,"         \
	"cublas[SDCZ]matinvBatched,cublas[SDCZ]ge[lq]*Batched,cublas*GroupedBatched*,"               \
	"cublasAsumEx*,cublasAxpyEx*,cublasCopyEx*,cublasDot*Ex*,cublasIam*Ex*,cublasNrm2Ex*,"       \
	"cublasRot*Ex*,cublasScalEx*,cublasSwapEx*"

SPAN__PROGRAM(cudalib_call,
	      "span/" LIBRARIES ":"
	      "cufft*,cusparse[!G]*,cusparseLt*,cusolver*,curand*,nvjpeg*,nppi*,npps*,createInfer*,getBuilder*,"
	      "initLibNvInferPlugins," CUBLAS_FUNCTIONS,
	      cudalib_call, SPAN__NOTHING, WITHIN_OTHERS, SPAN__NOTHING)
{
}
