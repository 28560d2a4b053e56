// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What programs do that is hard for a tool inside of them. */
#define _GNU_SOURCE
#include "work.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNELS 200
#define GRAPHS	5 /* launches of a graph */

static void some(struct lane *l, int n)
{
	for (int i = 0; i < n; i++)
		lane__add(l);
	lane__wait(l);
}

static void launch(struct lane *l, cu_graph_exec graph)
{
	for (int i = 0; i < GRAPHS; i++)
		lane__launch(l, graph);
	lane__wait(l);
}

/* The shim is switched on when CUDA has been at work for a while and has a graph; off; and on again. */
int work__late(struct gpu *g)
{
	cu_graph_exec graph;
	struct lane l;

	truth__phase("before");
	lane__open(&l, g, 1);
	graph = lane__graph(&l);
	launch(&l, graph);
	some(&l, KERNELS);
	for (int i = 0; i < 2; i++) {
		shim__switch(true);
		truth__phase(i ? "on again" : "on");
		launch(&l, graph);
		some(&l, KERNELS);
		lane__set(&l, 1, 4096);
		lane__wait(&l);
		shim__switch(false);
		truth__phase(i ? "off again" : "off");
		some(&l, KERNELS);
	}
	return 0;
}

/* The shim is on from CUDA's start; off; and on again, with a graph of the first time and one of the second. */
int work__again(struct gpu *g)
{
	cu_graph_exec first, second;
	struct lane l;

	truth__phase("on");
	lane__open(&l, g, 1);
	first = lane__graph(&l);
	launch(&l, first);
	some(&l, KERNELS);
	shim__switch(false);
	truth__phase("off");
	launch(&l, first);
	shim__switch(true);
	truth__phase("on again");
	launch(&l, first);
	some(&l, KERNELS);
	truth__phase("on again, with a new graph");
	second = lane__graph(&l);
	launch(&l, second);
	return 0;
}

/* By the driver, and as libcudart does it where there is one (WORK_CUDART). */
int work__reset(struct gpu *g)
{
	const char *path = getenv("WORK_CUDART");
	void *runtime = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*reset)(void) = runtime ? (int (*)(void))dlsym(runtime, "cudaDeviceReset") : NULL;
	int (*free_nothing)(void *) = runtime ? (int (*)(void *))dlsym(runtime, "cudaFree") : NULL;
	struct lane l;

	for (int i = 0; i < 3; i++) {
		truth__phase(i ? "after a reset" : "before a reset");
		lane__open(&l, g, 1 + i);
		some(&l, KERNELS);
		if (i == 2)
			break;
		if (i == 1 && reset && free_nothing) {
			free_nothing(NULL);
			truth__fact_number("cudaDeviceReset", reset());
		} else if (cu.primary_reset) {
			truth__fact_number("cuDevicePrimaryCtxReset", cu.primary_reset(g->device));
		}
		MUST(cu.primary_retain(&g->context, g->device));
		MUST(cu.context_set(g->context));
		gpu__load(g);
	}
	return 0;
}

/* A child that tries CUDA, which it can't use; and one that becomes another program with CUDA of its own. */
int work__fork(struct gpu *g, const char *self)
{
	char out[4096], truth[4096];
	int status = 0;
	struct lane l;
	pid_t pid;

	truth__phase("before a fork");
	lane__open(&l, g, 1);
	some(&l, KERNELS);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(cu.init(0) ? 1 : 0);
	}
	some(&l, KERNELS);
	waitpid(pid, &status, 0);
	truth__fact_number("child_status", status);
	pid = fork();
	if (!pid) {
		snprintf(out, sizeof(out), "%s.child", getenv("SHIM_OUT") ?: "/dev/null");
		snprintf(truth, sizeof(truth), "%s.child", getenv("WORK_TRUTH") ?: "/dev/null");
		setenv("SHIM_OUT", out, 1);
		setenv("WORK_TRUTH", truth, 1);
		alarm(60);
		execl(self, self, "many", "1000", NULL);
		_exit(127);
	}
	truth__phase("after a fork");
	some(&l, KERNELS);
	waitpid(pid, &status, 0);
	truth__fact_number("other_program_status", status);
	return 0;
}

/* Leaves while the GPU is at work. */
int work__exit(struct gpu *g, bool at_once)
{
	struct lane l;

	truth__phase("exit");
	lane__open(&l, g, 1);
	some(&l, 10);
	for (int i = 0; i < KERNELS; i++)
		lane__spin(&l, 1000000, 0);
	truth__write();
	if (at_once)
		_exit(0);
	return 0;
}

/* The primary one and two more, in turns. */
int work__contexts(struct gpu *g)
{
	struct gpu gpus[3] = { *g, *g, *g };
	struct lane lanes[3];

	if (!cu.context_create || !cu.context_destroy)
		return 5;
	truth__phase("contexts");
	for (int i = 0; i < 3; i++) {
		if (i)
			MUST(cu.context_create(&gpus[i].context, 0, g->device));
		MUST(cu.context_set(gpus[i].context));
		if (i)
			gpu__load(&gpus[i]);
		lane__open(&lanes[i], &gpus[i], 1 + i);
	}
	for (int n = 0; n < 5; n++)
		for (int i = 0; i < 3; i++) {
			MUST(cu.context_set(gpus[i].context));
			some(&lanes[i], 20 * (i + 1));
		}
	for (int i = 1; i < 3; i++)
		MUST(cu.context_destroy(gpus[i].context));
	MUST(cu.context_set(g->context));
	lane__add(&lanes[0]);
	lane__wait(&lanes[0]);
	return 0;
}
