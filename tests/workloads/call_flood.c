// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that call a library's cudaMemcpy as fast as possible after a line on stdin,
 * each with the sizes 1, 2, ...
 *
 *	call_flood LIBRARY THREADS CALLS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int (*copy)(void *, const void *, size_t, int);
static long calls;

static void *flood(void *arg)
{
	for (long i = 1; i <= calls; i++)
		copy(NULL, NULL, i, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int n = lib ? atoi(argv[2]) : 0;
	pthread_t threads[64];

	copy = lib ? (int (*)(void *, const void *, size_t, int))dlsym(lib, "cudaMemcpy") : NULL;
	if (!copy || n > 64) {
		fprintf(stderr, "call_flood LIBRARY THREADS CALLS\n");
		return 1;
	}
	calls = atol(argv[3]);
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, flood, NULL))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
