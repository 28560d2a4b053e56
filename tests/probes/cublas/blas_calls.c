// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * blas_calls LIBCUBLAS LIBCUBLASLT [null]: prints "ready", and at a line on stdin calls each function that sonde knows
 * with sizes. Prints for each call its function, result and floating-point operations, which are counted one by one as
 * textbooks compute the result. null: with the handle NULL, which the real library refuses; else with 0x4a, which the
 * double accepts.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas_api.h"

static void *libraries[2], *handle_of_all;
static char memory[4096]; /* scalars and matrices: the double reads none, and the real library gets no further */
#define P ((void *)memory)

static void *lookup(const char *name)
{
	void *found = dlsym(libraries[0], name);

	found = found ? found : dlsym(libraries[1], name);
	if (!found)
		fprintf(stderr, "no %s\n", name);
	return found;
}

#define CALL(flop, function, ...)                                                                        \
	do {                                                                                             \
		__typeof__(&function) call = (__typeof__(&function))lookup(#function);                   \
		/* the real library does not check the handle of these */                                \
		if (call && (H || !strstr(#function, "gemv") || !strstr(#function, "Batched"))) {        \
			int ret = call(__VA_ARGS__);                                                     \
			printf("%s %d %llu\n", #function, ret, ret ? 0ULL : (unsigned long long)(flop)); \
		}                                                                                        \
	} while (0)
#define H handle_of_all

/* Operations in multiplications and additions of the type: a complex product has 6 of real numbers, a sum 2. */
static struct {
	unsigned long long mul, add;
} done;

static unsigned long long result(int complex, unsigned long long batch)
{
	unsigned long long n = complex ? 6 * done.mul + 2 * done.add : done.mul + done.add;

	done.mul = done.add = 0;
	return n * batch;
}

static void dot(long k)
{
	for (long i = 0; i < k; i++) {
		done.mul++;
		done.add++;
	}
}

static unsigned long long gemm(int complex, long m, long n, long k, long batch)
{
	for (long i = 0; i < m; i++)
		for (long j = 0; j < n; j++)
			dot(k);
	return result(complex, batch);
}

static unsigned long long syrk(int complex, long n, long k)
{
	for (long i = 0; i < n; i++)
		for (long j = 0; j <= i; j++)
			dot(k);
	return result(complex, 1);
}

/* On the diagonal both products are equal: it is added twice. */
static unsigned long long syr2k(int complex, long n, long k)
{
	for (long i = 0; i < n; i++)
		for (long j = 0; j <= i; j++) {
			dot(i == j ? k : 2 * k);
			done.add += i == j;
		}
	return result(complex, 1);
}

/* Row i of a triangle times a column: i + 1 products and i sums. trsm: i products and differences, and a division. */
static unsigned long long triangle(int complex, long size, long others, long batch)
{
	for (long c = 0; c < others; c++)
		for (long i = 0; i < size; i++) {
			dot(i);
			done.mul++;
		}
	return result(complex, batch);
}

/* Each function for int and for int64_t */
#define BOTH(flop, function, ...)                       \
	do {                                            \
		CALL(flop, function, __VA_ARGS__);      \
		CALL(flop, function##_64, __VA_ARGS__); \
	} while (0)
#define EACH(of, flop, name, suffix, ...)              \
	do {                                           \
		const int complex = of;                \
		BOTH(flop, name##suffix, __VA_ARGS__); \
	} while (0)
#define REAL(flop, function, suffix, ...)                              \
	do {                                                           \
		EACH(0, flop, cublasS##function, suffix, __VA_ARGS__); \
		EACH(0, flop, cublasD##function, suffix, __VA_ARGS__); \
	} while (0)
#define COMPLEX_(flop, function, suffix, ...)                          \
	do {                                                           \
		EACH(1, flop, cublasC##function, suffix, __VA_ARGS__); \
		EACH(1, flop, cublasZ##function, suffix, __VA_ARGS__); \
	} while (0)
#define ALL(flop, function, suffix, ...)                       \
	do {                                                   \
		REAL(flop, function, suffix, __VA_ARGS__);     \
		COMPLEX_(flop, function, suffix, __VA_ARGS__); \
	} while (0)

#define R_32F	     0
#define R_16F	     2
#define C_32F	     4
#define R_16BF	     14
#define COMPUTE_32F  68
#define COMPUTE_TF32 77

static void call_gemms(void)
{
	ALL(gemm(complex, 5, 6, 7, 1), gemm, _v2, H, 0, 0, 5, 6, 7, P, P, 8, P, 9, P, P, 10);
	COMPLEX_(gemm(complex, 3, 4, 5, 1), gemm3m, , H, 1, 2, 3, 4, 5, P, P, 8, P, 9, P, P, 10);
	BOTH(gemm(0, 9, 8, 7, 1), cublasHgemm, H, 1, 0, 9, 8, 7, P, P, 9, P, 9, P, P, 10);
	ALL(gemm(complex, 2, 3, 4, 11), gemmBatched, , H, 0, 1, 2, 3, 4, P, P, 8, P, 9, P, P, 10, 11);
	BOTH(gemm(0, 2, 3, 4, 12), cublasHgemmBatched, H, 0, 1, 2, 3, 4, P, P, 8, P, 9, P, P, 10, 12);
	BOTH(gemm(1, 2, 3, 4, 13), cublasCgemm3mBatched, H, 0, 1, 2, 3, 4, P, P, 8, P, 9, P, P, 10, 13);
	ALL(gemm(complex, 3, 2, 5, 4), gemmStridedBatched, , H, 0, 1, 3, 2, 5, P, P, 8, 100, P, 9, 200, P, P, 10, 300,
	    4);
	BOTH(gemm(0, 3, 2, 5, 6), cublasHgemmStridedBatched, H, 0, 1, 3, 2, 5, P, P, 8, 100, P, 9, 200, P, P, 10, 300,
	     6);
	BOTH(gemm(1, 3, 2, 5, 7), cublasCgemm3mStridedBatched, H, 0, 1, 3, 2, 5, P, P, 8, 100, P, 9, 200, P, P, 10, 300,
	     7);
}

static void call_typed_gemms(void)
{
	BOTH(gemm(0, 4, 5, 6, 1), cublasSgemmEx, H, 0, 0, 4, 5, 6, P, P, R_16F, 8, P, R_16F, 9, P, P, R_32F, 10);
	BOTH(gemm(1, 4, 5, 6, 1), cublasCgemmEx, H, 0, 0, 4, 5, 6, P, P, C_32F, 8, P, C_32F, 9, P, P, C_32F, 10);
	BOTH(gemm(1, 4, 5, 6, 1), cublasCgemm3mEx, H, 0, 0, 4, 5, 6, P, P, C_32F, 8, P, C_32F, 9, P, P, C_32F, 10);
	BOTH(gemm(0, 8, 4, 2, 1), cublasGemmEx, H, 1, 0, 8, 4, 2, P, P, R_16BF, 8, P, R_16BF, 9, P, P, R_16BF, 10,
	     COMPUTE_32F, -1);
	BOTH(gemm(1, 8, 4, 2, 1), cublasGemmEx, H, 1, 0, 8, 4, 2, P, P, C_32F, 8, P, C_32F, 9, P, P, C_32F, 10,
	     COMPUTE_TF32, -1);
	BOTH(gemm(0, 7, 5, 3, 9), cublasGemmBatchedEx, H, 0, 0, 7, 5, 3, P, P, R_16F, 8, P, R_16F, 9, P, P, R_32F, 10,
	     9, COMPUTE_32F, -1);
	BOTH(gemm(0, 6, 5, 4, 8), cublasGemmStridedBatchedEx, H, 0, 0, 6, 5, 4, P, P, R_32F, 8, 100, P, R_32F, 9, 200,
	     P, P, R_32F, 10, 300, 8, COMPUTE_TF32, -1);
}

static void call_level_3(void)
{
	ALL(gemm(complex, 5, 6, 5, 1), symm, _v2, H, 0, 0, 5, 6, P, P, 8, P, 9, P, P, 10);
	COMPLEX_(gemm(complex, 5, 6, 6, 1), hemm, _v2, H, 1, 0, 5, 6, P, P, 8, P, 9, P, P, 10);
	ALL(syrk(complex, 7, 4), syrk, _v2, H, 0, 0, 7, 4, P, P, 8, P, P, 10);
	COMPLEX_(syrk(complex, 6, 5), herk, _v2, H, 1, 2, 6, 5, P, P, 8, P, P, 10);
	BOTH(syrk(1, 8, 3), cublasCsyrkEx, H, 0, 0, 8, 3, P, P, C_32F, 8, P, P, C_32F, 10);
	BOTH(syrk(1, 8, 3), cublasCherk3mEx, H, 0, 0, 8, 3, P, P, C_32F, 8, P, P, C_32F, 10);
	ALL(syr2k(complex, 7, 4), syr2k, _v2, H, 0, 0, 7, 4, P, P, 8, P, 9, P, P, 10);
	COMPLEX_(syr2k(complex, 6, 5), her2k, _v2, H, 0, 2, 6, 5, P, P, 8, P, 9, P, P, 10);
	ALL(syrk(complex, 9, 2), syrkx, , H, 0, 0, 9, 2, P, P, 9, P, 9, P, P, 10);
	COMPLEX_(syrk(complex, 9, 2), herkx, , H, 0, 2, 9, 2, P, P, 9, P, 9, P, P, 10);
	ALL(triangle(complex, 7, 3, 1), trmm, _v2, H, 0, 0, 0, 0, 7, 3, P, P, 8, P, 9, P, 10);
	ALL(triangle(complex, 3, 7, 1), trsm, _v2, H, 1, 0, 1, 0, 7, 3, P, P, 8, P, 9);
	ALL(triangle(complex, 6, 4, 5), trsmBatched, , H, 0, 0, 1, 0, 6, 4, P, P, 8, P, 9, 5);
}

static void call_vectors(void)
{
	ALL(gemm(complex, 7, 1, 6, 1), gemv, _v2, H, 0, 7, 6, P, P, 8, P, 1, P, P, 1);
	ALL(gemm(complex, 7, 1, 6, 3), gemvBatched, , H, 0, 7, 6, P, P, 8, P, 1, P, P, 1, 3);
	BOTH(gemm(0, 7, 1, 6, 3), cublasHSHgemvBatched, H, 0, 7, 6, P, P, 8, P, 1, P, P, 1, 3);
	BOTH(gemm(0, 7, 1, 6, 3), cublasTSTgemvBatched, H, 0, 7, 6, P, P, 8, P, 1, P, P, 1, 3);
	ALL(gemm(complex, 7, 1, 6, 2), gemvStridedBatched, , H, 1, 7, 6, P, P, 8, 50, P, 1, 60, P, P, 1, 70, 2);
	BOTH(gemm(0, 7, 1, 6, 2), cublasHSSgemvStridedBatched, H, 1, 7, 6, P, P, 8, 50, P, 1, 60, P, P, 1, 70, 2);
	BOTH(gemm(0, 7, 1, 6, 2), cublasTSSgemvStridedBatched, H, 1, 7, 6, P, P, 8, 50, P, 1, 60, P, P, 1, 70, 2);
	REAL(gemm(complex, 5, 4, 1, 1), ger, _v2, H, 5, 4, P, P, 1, P, 1, P, 8);
	COMPLEX_(gemm(complex, 5, 4, 1, 1), geru, _v2, H, 5, 4, P, P, 1, P, 1, P, 8);
	COMPLEX_(gemm(complex, 5, 4, 1, 1), gerc, _v2, H, 5, 4, P, P, 1, P, 1, P, 8);
	ALL(gemm(complex, 6, 1, 6, 1), symv, _v2, H, 0, 6, P, P, 8, P, 1, P, P, 1);
	COMPLEX_(gemm(complex, 6, 1, 6, 1), hemv, _v2, H, 0, 6, P, P, 8, P, 1, P, P, 1);
	/* without sizes: only with --cublas=all */
	BOTH(0, cublasSaxpy_v2, H, 100, P, P, 1, P, 1);
}

/* Products of a_rows x a_columns and b_rows x b_columns, as they are stored */
static void call_lt(int type, int compute, int ta, int tb, long m, long n, long k, int batch)
{
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulDesc_t desc;

	((__typeof__(&cublasLtMatrixLayoutCreate))lookup("cublasLtMatrixLayoutCreate"))(&a, type, ta ? k : m,
											ta ? m : k, 64);
	((__typeof__(&cublasLtMatrixLayoutCreate))lookup("cublasLtMatrixLayoutCreate"))(&b, type, tb ? n : k,
											tb ? k : n, 64);
	((__typeof__(&cublasLtMatrixLayoutCreate))lookup("cublasLtMatrixLayoutCreate"))(&c, type, m, n, 64);
	((__typeof__(&cublasLtMatmulDescCreate))lookup("cublasLtMatmulDescCreate"))(&desc, compute, type);
	for (int i = 0; i < 3; i++)
		((__typeof__(&cublasLtMatrixLayoutSetAttribute))lookup("cublasLtMatrixLayoutSetAttribute"))(
			i == 0 ? a :
			i == 1 ? b :
				 c,
			5, &batch, sizeof(batch));
	((__typeof__(&cublasLtMatmulDescSetAttribute))lookup("cublasLtMatmulDescSetAttribute"))(desc, 3, &ta,
												sizeof(ta));
	((__typeof__(&cublasLtMatmulDescSetAttribute))lookup("cublasLtMatmulDescSetAttribute"))(desc, 4, &tb,
												sizeof(tb));
	CALL(gemm(type == C_32F, m, n, k, batch), cublasLtMatmul, H, desc, P, P, a, P, b, P, P, c, P, c, NULL, NULL, 0,
	     NULL);
}

static void call_others(void)
{
	CALL(0, cublasSetMathMode, H, 3);
	CALL(gemm(0, 4, 4, 4, 1), cublasSgemm_v2, H, 0, 0, 4, 4, 4, P, P, 8, P, 9, P, P, 10);
	/* more than 32 bits: counted here by multiplication */
	CALL(2ULL << 33, cublasDgemm_v2_64, H, 0, 0, 1L << 33, 1, 1, P, P, 8, P, 9, P, P, 10);
	/* one that fails */
	CALL(0, cublasSgemm_v2, H ? (void *)0xbad : NULL, 0, 0, 5, 5, 5, P, P, 8, P, 9, P, P, 10);
}

int main(int argc, char **argv)
{
	char line[16];

	for (int i = 0; i < 2; i++) {
		libraries[i] = dlopen(argv[1 + i], RTLD_NOW | RTLD_GLOBAL);
		if (!libraries[i]) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	}
	H = argc > 3 ? NULL : (void *)0x4a;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	call_gemms();
	call_typed_gemms();
	call_level_3();
	call_vectors();
	call_lt(R_16F, COMPUTE_32F, 0, 0, 5, 6, 7, 1);
	call_lt(R_16BF, COMPUTE_32F, 1, 0, 6, 7, 8, 1);
	call_lt(R_32F, COMPUTE_TF32, 0, 1, 7, 8, 9, 3);
	call_lt(C_32F, COMPUTE_32F, 2, 2, 4, 5, 6, 2);
	call_others();
	return 0;
}
