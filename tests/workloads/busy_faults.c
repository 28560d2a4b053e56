// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A busy process with a library of many functions: one thread maps, touches and
 * unmaps memory and measures its longest step, others call the library's functions.
 *
 *	busy_faults LIBRARY CALLERS
 *
 * The library has functions probed_0, probed_1, ... Each line on stdin is
 * answered by "LONGEST-STEP-NS STEPS CALLS" since the line before. Ends with stdin.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS 4096
#define PAGES	  16

static int (*functions[FUNCTIONS])(int);
static int n_functions;
static volatile int stop;
static uint64_t longest, steps, calls;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/*
 * Other processes must not affect the figure, hence the best priority and short
 * sleeps. Not real-time priority, as locks are handed to such waiters at once.
 */
static void *fault(void *arg)
{
	struct timespec pause = { .tv_nsec = 50000 };

	setpriority(PRIO_PROCESS, gettid(), -20);
	while (!stop) {
		uint64_t start = now_ns(), took;
		char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			abort();
		for (int i = 0; i < PAGES; i++)
			p[i * 4096] = 1;
		munmap(p, PAGES * 4096);
		took = now_ns() - start;
		if (took > __atomic_load_n(&longest, __ATOMIC_RELAXED))
			__atomic_store_n(&longest, took, __ATOMIC_RELAXED);
		__atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void *call(void *arg)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int i = 0;

	while (!stop) {
		for (int k = 0; k < 50; k++, i = (i + 1) % n_functions)
			if (functions[i](i) != i + 1)
				abort();
		__atomic_fetch_add(&calls, 50, __ATOMIC_RELAXED);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int callers = lib ? atoi(argv[2]) : 0;
	char line[64];
	pthread_t t;

	if (!lib) {
		fprintf(stderr, "busy_faults LIBRARY CALLERS\n");
		return 1;
	}
	for (; n_functions < FUNCTIONS; n_functions++) {
		snprintf(line, sizeof(line), "probed_%d", n_functions);
		functions[n_functions] = (int (*)(int))dlsym(lib, line);
		if (!functions[n_functions])
			break;
	}
	if (!n_functions || pthread_create(&t, NULL, fault, NULL))
		return 1;
	for (int i = 0; i < callers; i++)
		if (pthread_create(&t, NULL, call, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%llu %llu %llu\n", (unsigned long long)__atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED),
		       (unsigned long long)__atomic_exchange_n(&steps, 0, __ATOMIC_RELAXED),
		       (unsigned long long)__atomic_exchange_n(&calls, 0, __ATOMIC_RELAXED));
		fflush(stdout);
	}
	stop = 1;
	return 0;
}
