// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that call tests/fakes/libcudart.c without pause and check the results, and one
 * that maps, touches and unmaps memory. A thread passes the sizes 1, 2, 3, ... to
 * cudaMemcpy, so that missing and duplicate calls in a recording can be found.
 *
 *	busy_calls LIBRARY THREADS	prints "ready"; ends with stdin, and then prints the calls of all
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static int (*copy)(void *, const void *, size_t, int);
static int (*allocate)(void **, size_t);
static volatile int stop;
static long calls;

static void *call(void *arg)
{
	struct timespec pause = { .tv_nsec = 500000 };
	int copied, allocated;
	void *p;

	for (size_t i = 1; !stop; i++) {
		copied = copy(NULL, NULL, i, 0);
		allocated = allocate(&p, i);
		if (copied != 2 || allocated || p != (void *)(uintptr_t)(0x7000000 + i)) {
			fprintf(stderr, "busy_calls: call %zu: copy returned %d, allocate %d and %p\n", i, copied,
				allocated, p);
			abort();
		}
		__atomic_fetch_add(&calls, 2, __ATOMIC_RELAXED);
		if (i % 8 == 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static void *fault(void *arg)
{
	struct timespec pause = { .tv_nsec = 100000 };

	while (!stop) {
		char *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int i = 0; i < 16; i++)
			p[i * 4096] = 1;
		munmap(p, 16 * 4096);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int n = lib ? atoi(argv[2]) : 0;
	pthread_t threads[65];

	copy = lib ? (int (*)(void *, const void *, size_t, int))dlsym(lib, "cudaMemcpy") : NULL;
	allocate = lib ? (int (*)(void **, size_t))dlsym(lib, "cudaMalloc") : NULL;
	if (!copy || !allocate || n > 64) {
		fprintf(stderr, "busy_calls LIBRARY THREADS\n");
		return 1;
	}
	for (int i = 0; i <= n; i++)
		if (pthread_create(&threads[i], NULL, i ? call : fault, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	stop = 1;
	for (int i = 0; i <= n; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", calls);
	return 0;
}
