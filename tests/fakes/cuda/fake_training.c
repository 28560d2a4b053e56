// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A training loop on simulated GPUs.
 *
 *	fake_training [-d DEVICES] [-s STREAMS] [-n STEPS] [-t THREADS] [-k KERNELS a step] [-u KERNEL_US] [-p PAUSE_US]
 *		[-w] (waits for a line on stdin first) [-f] (forks children in between) [-g] (graphs, too)
 *		[-o] (all is prepared, also graphs, before the line on stdin)
 *		[-r] (resets its device in between) [-c] (each thread creates a context)
 *		[-x] (executes itself once) [-P STEP] (cudaProfilerStart before that step, cudaProfilerStop after it)
 */
#include "fake.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int devices = 1, streams = 2, steps = 10, threads = 1, kernels = 10, us = 20, pause_us, profiled = -1;
static bool graphs, forks, resets, contexts, early;

#define MUST(call)                                              \
	do {                                                    \
		cudaError_t e_ = (call);                        \
		if (e_) {                                       \
			fprintf(stderr, "%s: %d\n", #call, e_); \
			exit(1);                                \
		}                                               \
	} while (0)

static const char *const names[] = { "_Z4gemmILi128EEvPfS0_S0_i", "_Z7softmaxPfi", "_Z10layer_normPfS_i",
				     "_Z4adamPfS_S_f" };

struct worker {
	pthread_t thread;
	int number, device;
	struct fake_kernel kernels[4];
	cudaStream_t streams[64];
	void *memory;
	cudaEvent_t event;
	cudaGraphExec_t graph;
};

static void build_graph(struct worker *w)
{
	struct cudaKernelNodeParams k = { .func = &w->kernels[0] };
	struct cudaMemsetParams m = { .width = 1 << 16, .height = 1, .elementSize = 1 };
	cudaGraphNode_t node;
	cudaGraph_t graph;

	MUST(cudaGraphCreate(&graph, 0));
	for (int i = 0; i < 3; i++)
		MUST(cudaGraphAddKernelNode(&node, graph, NULL, 0, &k));
	MUST(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &m));
	MUST(cudaGraphInstantiate(&w->graph, graph, 0));
}

static void new_context(struct worker *w)
{
	CUcontext context;

	if (cuCtxCreate_v4(&context, NULL, 0, w->device)) {
		fprintf(stderr, "cuCtxCreate failed\n");
		exit(1);
	}
}

static void prepare(struct worker *w)
{
	w->device = w->number % devices;
	for (int i = 0; i < 4; i++)
		w->kernels[i] = (struct fake_kernel){ names[i], (uint64_t)us * 1000 * (i + 1) / 2 };
	MUST(cudaSetDevice(w->device));
	if (contexts)
		new_context(w);
	MUST(cudaMalloc(&w->memory, 1 << 20));
	MUST(cudaEventCreate(&w->event));
	for (int i = 0; i < streams; i++)
		MUST(cudaStreamCreate(&w->streams[i]));
	if (graphs)
		build_graph(w);
}

static void step(struct worker *w, int n)
{
	cudaStream_t first = w->streams[0];
	static char host[1 << 16];

	MUST(cudaMemcpyAsync(w->memory, host, sizeof(host), cudaMemcpyHostToDevice, first));
	MUST(cudaMemsetAsync(w->memory, 0, 4096, first));
	for (int i = 0; i < kernels; i++)
		MUST(cudaLaunchKernel(&w->kernels[i % 4], (dim3){ 64, 2, 1 }, (dim3){ 128, 1, 1 }, NULL, 1024,
				      w->streams[i % streams]));
	MUST(cudaEventRecord(w->event, first));
	MUST(cudaStreamWaitEvent(w->streams[streams - 1], w->event, 0));
	if (graphs)
		MUST(cudaGraphLaunch(w->graph, first));
	if (devices > 1)
		MUST(cudaMemcpyPeerAsync((char *)w->memory + (1ULL << 40), (w->device + 1) % devices, w->memory,
					 w->device, 4096, first));
	MUST(cudaStreamSynchronize(first));
	MUST(cudaMemcpy(host, w->memory, 1024, cudaMemcpyDeviceToHost));
	if (n % 8 == 7)
		MUST(cudaDeviceSynchronize());
}

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

static void profile(int n, cudaError_t (*call)(void))
{
	if (n != profiled)
		return;
	MUST(cudaDeviceSynchronize());
	MUST(call());
}

static void *train(void *arg)
{
	struct worker *w = arg;

	if (early)
		MUST(cudaSetDevice(w->device));
	else
		prepare(w);
	for (int i = 0; i < steps; i++) {
		profile(i, cudaProfilerStart);
		step(w, i);
		profile(i, cudaProfilerStop);
		if (pause_us)
			usleep(pause_us);
		if (resets && i % 8 == 7) {
			MUST(cudaDeviceReset());
			prepare(w);
		}
		/* as a loader's worker: it leaves CUDA alone */
		if (forks && i % 4 == 0) {
			pid_t pid = fork();

			if (!pid) {
				usleep(20000);
				_exit(cudaGetDeviceCount(&devices) == cudaSuccess);
			}
			waitpid(pid, NULL, 0);
		}
	}
	MUST(cudaEventSynchronize(w->event));
	MUST(cudaDeviceSynchronize());
	MUST(cudaFree(w->memory));
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker *workers;
	bool waits = false, again = false;
	int c;

	while ((c = getopt(argc, argv, "d:s:n:t:k:u:p:P:wfgorcx")) != -1) {
		int n = optarg ? atoi(optarg) : 1;

		switch (c) {
		case 'd':
			devices = n;
			break;
		case 's':
			streams = n > 64 ? 64 : n;
			break;
		case 'n':
			steps = n;
			break;
		case 't':
			threads = n;
			break;
		case 'k':
			kernels = n;
			break;
		case 'u':
			us = n;
			break;
		case 'p':
			pause_us = n;
			break;
		case 'P':
			profiled = n;
			break;
		case 'w':
			waits = true;
			break;
		case 'f':
			forks = true;
			break;
		case 'g':
			graphs = true;
			break;
		case 'o':
			early = true;
			break;
		case 'r':
			resets = true;
			break;
		case 'c':
			contexts = true;
			break;
		case 'x':
			again = !getenv("FAKE_TRAINING_AGAIN");
			break;
		default:
			return 2;
		}
	}
	workers = calloc(threads, sizeof(*workers));
	for (int i = 0; i < threads; i++) {
		workers[i].number = i;
		if (early)
			prepare(&workers[i]);
	}
	/* CUDA is there before the line: a tracer that comes now comes late */
	if (waits) {
		MUST(cudaSetDevice(0));
		printf("ready %d\n", getpid());
		fflush(stdout);
		getchar();
	}
	for (int i = 0; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, train, &workers[i]);
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (again) {
		/* what CUPTI still has is lost, unless it is given a moment */
		usleep(300000);
		setenv("FAKE_TRAINING_AGAIN", "1", 1);
		execv("/proc/self/exe", argv);
	}
	return 0;
}
