// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls the real CUDA runtime from four threads and two forked children, and
 * logs them, one line per call: `PID TID FUNCTION RETURNED BEFORE AFTER`, with
 * times of CLOCK_MONOTONIC. Without a GPU the calls return errors, and are recorded
 * nevertheless.
 *
 *	cuda_truth FILE ROUNDS		prints "ready", waits for a line, calls, writes
 *	cuda_truth FILE ROUNDS LIBRARY	after the line: dlopens the library, calls
 *					for ROUNDS milliseconds in one thread
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#define THREADS	  4
#define CHILDREN  2
#define MAX_CALLS (1 << 20)

struct call {
	unsigned long long before, after;
	const char *name;
	int pid, tid, ret;
};

static struct call *calls; /* shared with the children */
static unsigned *n_calls;
/* The thread's ids are read at its first call, as two system calls for each of 11,000 calls are expensive. */
static __thread int pid, tid;
static int rounds;

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void note(const char *name, int ret, unsigned long long before, unsigned long long after)
{
	unsigned i = __atomic_fetch_add(n_calls, 1, __ATOMIC_RELAXED);

	if (i >= MAX_CALLS)
		abort();
	if (!tid) {
		tid = syscall(SYS_gettid);
		pid = getpid();
	}
	calls[i] = (struct call){ before, after, name, pid, tid, ret };
}

#define CALL(function, ...)                            \
	do {                                           \
		unsigned long long before_ = now();    \
		int ret_ = function(__VA_ARGS__);      \
		note(#function, ret_, before_, now()); \
	} while (0)

static void no_kernel(void)
{
}

static void one_round(int i)
{
	dim3 grid = { 1, 1, 1 }, block = { 32, 1, 1 };
	void *args[] = { NULL }, *dev = NULL;
	char host[64] = "";

	CALL(cudaMalloc, &dev, 64);
	CALL(cudaMemcpy, dev, host, sizeof(host), cudaMemcpyHostToDevice);
	CALL(cudaMemcpyAsync, dev, host, sizeof(host), cudaMemcpyHostToDevice, NULL);
	CALL(cudaMemset, dev, 0, 64);
	CALL(cudaLaunchKernel, (const void *)no_kernel, grid, block, args, 0, NULL);
	if (i % 3 == 0)
		CALL(cudaStreamSynchronize, NULL);
	if (i % 5 == 0)
		CALL(cudaDeviceSynchronize);
	if (i % 7 == 0)
		CALL(cudaGetLastError);
	CALL(cudaFree, dev);
}

static void *worker(void *arg)
{
	for (int i = 0; i < rounds; i++)
		one_round(i);
	return NULL;
}

static void many(void)
{
	pthread_t threads[THREADS];
	pid_t children[CHILDREN];

	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (!children[i]) {
			worker(NULL);
			_exit(0);
		}
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHILDREN; i++)
		waitpid(children[i], NULL, 0);
}

/* The library is mapped for the first time while sonde records. */
static void late(const char *library)
{
	cudaError_t (*get)(void *, size_t);
	unsigned long long end, before;
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *dev = NULL;
	int ret;

	if (!lib || !(get = (cudaError_t(*)(void *, size_t))dlsym(lib, "cudaMalloc"))) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	for (end = now() + rounds * 1000000ull; now() < end;) {
		before = now();
		ret = get(&dev, 64);
		note("cudaMalloc", ret, before, now());
		usleep(20);
	}
}

int main(int argc, char **argv)
{
	char line[8];
	FILE *out;

	if (argc < 3)
		return 2;
	rounds = atoi(argv[2]);
	calls = mmap(NULL, MAX_CALLS * sizeof(*calls) + sizeof(*n_calls), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		return 1;
	n_calls = (unsigned *)&calls[MAX_CALLS];
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (argc > 3)
		late(argv[3]);
	else
		many();
	out = fopen(argv[1], "w");
	if (!out)
		return 1;
	for (unsigned i = 0; i < *n_calls; i++)
		fprintf(out, "%d %d %s %d %llu %llu\n", calls[i].pid, calls[i].tid, calls[i].name, calls[i].ret,
			calls[i].before, calls[i].after);
	fclose(out);
	return 0;
}
