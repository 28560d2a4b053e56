// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that uses the real CUDA runtime from three threads: allocates,
 * copies both ways, launches, waits; for N seconds, or until killed. Without a
 * GPU its calls return errors, and are recorded nevertheless. Prints nothing.
 *
 *	cuda_calls [SECONDS [CALLS]]	CALLS: rounds per thread, after which it ends
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#define THREADS 3
#define BYTES	(64 << 10)

static double seconds;
static long rounds;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* In place of a kernel: the runtime does not know it and refuses the launch. */
static void no_kernel(void)
{
}

static void one_round(char *host, cudaStream_t stream)
{
	dim3 grid = { 64, 1, 1 }, block = { 128, 1, 1 };
	void *args[] = { NULL };
	void *dev = NULL;

	cudaMalloc(&dev, BYTES);
	cudaMemcpyAsync(dev, host, BYTES, cudaMemcpyHostToDevice, stream);
	cudaLaunchKernel((const void *)no_kernel, grid, block, args, 0, stream);
	cudaMemcpy(host, dev, BYTES, cudaMemcpyDeviceToHost);
	cudaStreamSynchronize(stream);
	cudaFree(dev);
}

static void *worker(void *arg)
{
	double end = seconds > 0 ? now() + seconds : 0;
	cudaStream_t stream = NULL;
	char name[16], *host;
	long i;

	snprintf(name, sizeof(name), "stream-%ld", (long)arg);
	pthread_setname_np(pthread_self(), name);
	host = calloc(1, BYTES);
	if (!host)
		return NULL;
	cudaStreamCreate(&stream);
	for (i = 0; (!end || now() < end) && (!rounds || i < rounds); i++) {
		one_round(host, stream);
		usleep(1000);
	}
	if (stream)
		cudaStreamDestroy(stream);
	free(host);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	long i;

	seconds = argc > 1 ? atof(argv[1]) : 0;
	rounds = argc > 2 ? atol(argv[2]) : 0;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)i))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
