// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Products on the simulated GPU of tests/fakes/cuda, built by test_device.py: with -DLIBRARY a libcublas whose products
 * launch two kernels of 60 and 40 us, else a program that calls it 20 times from each of two threads, and launches
 * kernels of its own in between.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dim3 {
	unsigned int x, y, z;
};

/* tests/fakes/cuda/fake.h */
struct fake_kernel {
	const char *name;
	uint64_t ns;
	uint32_t ns_parameter;
};

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		     void *stream);
int cudaDeviceSynchronize(void);
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *A, int lda,
		   const void *B, int ldb, const void *beta, void *C, int ldc);
int cublasSetMathMode(void *handle, int mode);

static void launch(const struct fake_kernel *kernel)
{
	cudaLaunchKernel(kernel, (struct dim3){ 1, 1, 1 }, (struct dim3){ 32, 1, 1 }, NULL, 0, NULL);
}

#ifdef LIBRARY
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *A, int lda,
		   const void *B, int ldb, const void *beta, void *C, int ldc)
{
	static const struct fake_kernel kernels[] = { { "gemm", 60000 }, { "reduce", 40000 } };

	launch(&kernels[0]);
	launch(&kernels[1]);
	return 0;
}

int cublasSetMathMode(void *handle, int mode)
{
	return 0;
}
#else
static void *multiply(void *size)
{
	static const struct fake_kernel own = { "own", 30000 };
	int n = *(int *)size;

	for (int i = 0; i < 20; i++) {
		cublasSgemm_v2(size, 0, 0, n, n, n, NULL, NULL, n, NULL, n, NULL, NULL, n);
		launch(&own);
	}
	return NULL;
}

int main(void)
{
	int sizes[] = { 256, 512 };
	pthread_t thread;

	/* the first product uses FP32, the other one TF32 */
	cublasSetMathMode(&sizes[0], 0);
	cublasSetMathMode(&sizes[1], 3);
	pthread_create(&thread, NULL, multiply, &sizes[1]);
	multiply(&sizes[0]);
	pthread_join(thread, NULL);
	cudaDeviceSynchronize();
	return 0;
}
#endif
