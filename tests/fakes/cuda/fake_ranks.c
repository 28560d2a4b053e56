// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ranks of distributed training: processes that call collectives of the double of libnccl on simulated GPUs.
 *
 *	fake_ranks -l LIBNCCL [-n RANKS] [-s STEPS] [-p PAUSE_US a step]
 *		[-L RANK] (is late) [-u LATE_US] [-e EVERY] (in each so-manieth step)
 *		[-H RANK] (never comes to the collective of step HANG) [-D RANK] (calls another one in it) [-h HANG]
 *		[-a] (all functions in each step) [-g] (each step's calls are a group)
 *
 * Each rank prints RANK PID, and one that hangs "hung". FAKE_NCCL must begin the names of the files that they share.
 */
#include "fake.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define F32  7
#define SUM  0
#define HASH 0xc0ffee00d1ceull

typedef struct {
	char internal[128];
} nccl_id;
typedef int (*reducing)(const void *, void *, size_t, int, int, void *, cudaStream_t);
typedef int (*gathering)(const void *, void *, size_t, int, void *, cudaStream_t);
typedef int (*rooted)(const void *, void *, size_t, int, int, void *, cudaStream_t);

static int ranks = 8, steps = 20, pause_us = 5000, late = -1, late_us = 20000, every = 1, hangs = -1, differs = -1,
	   at = -1;
static int all, grouped, rank = -1;
static void *library, *comm;
static cudaStream_t stream;

static void *find(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

static void reduce(size_t count)
{
	((reducing)find("ncclAllReduce"))((void *)1, (void *)2, count, F32, SUM, comm, stream);
}

static void broadcast(size_t count)
{
	((rooted)find("ncclBroadcast"))((void *)1, (void *)2, count, F32, 0, comm, stream);
}

static void call_all(void)
{
	reduce(1 << 20);
	((gathering)find("ncclAllGather"))((void *)1, (void *)2, 1 << 18, F32, comm, stream);
	((reducing)find("ncclReduceScatter"))((void *)1, (void *)2, 1 << 17, F32, SUM, comm, stream);
	broadcast(1 << 16);
	((int (*)(const void *, void *, size_t, int, int, int, void *, cudaStream_t))find("ncclReduce"))(
		(void *)1, (void *)2, 3 << 16, F32, SUM, 0, comm, stream);
}

static void call_group(void)
{
	((int (*)(void))find("ncclGroupStart"))();
	for (int i = 1; i <= 3; i++)
		reduce((size_t)i << 16);
	((int (*)(void))find("ncclGroupEnd"))();
}

static void hang(void)
{
	printf("hung\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void step_of(int step)
{
	usleep(pause_us);
	if (rank == late && step % every == 0)
		usleep(late_us);
	if (rank == hangs && step == at)
		hang();
	if (rank == differs && step == at)
		broadcast(1 << 20);
	else if (all)
		call_all();
	else if (grouped)
		call_group();
	else
		reduce(1 << 20);
	cudaStreamSynchronize(stream);
}

static int run_rank(void)
{
	nccl_id id = { "" };
	uint64_t hash = HASH;

	memcpy(&id, &hash, sizeof(hash));
	if (cudaSetDevice(0) || cudaStreamCreate(&stream))
		return 1;
	if (((int (*)(void **, int, nccl_id, int))find("ncclCommInitRank"))(&comm, ranks, id, rank))
		return 1;
	printf("%d %d\n", rank, getpid());
	fflush(stdout);
	for (int i = 0; i < steps; i++)
		step_of(i);
	return cudaDeviceSynchronize();
}

static pid_t start(char **argv, int number)
{
	char rank_text[16], size_text[16], rank_option[] = "-r", *args[64] = { argv[0], rank_option, rank_text };
	pid_t pid;
	int n = 3;

	snprintf(rank_text, sizeof(rank_text), "%d", number);
	snprintf(size_text, sizeof(size_text), "%d", ranks);
	for (char **a = argv + 1; *a && n < 63; a++)
		args[n++] = *a;
	pid = fork();
	if (pid)
		return pid;
	setenv("RANK", rank_text, 1);
	setenv("WORLD_SIZE", size_text, 1);
	execv(argv[0], args);
	_exit(1);
}

int main(int argc, char **argv)
{
	const char *path = NULL;
	int status, failed = 0, c;

	while ((c = getopt(argc, argv, "l:n:s:p:L:u:e:H:D:h:r:ag")) != -1) {
		int n = optarg ? atoi(optarg) : 1;
		int *const numbers[128] = { ['n'] = &ranks,   ['s'] = &steps, ['p'] = &pause_us, ['L'] = &late,
					    ['u'] = &late_us, ['e'] = &every, ['H'] = &hangs,	 ['D'] = &differs,
					    ['h'] = &at,      ['r'] = &rank,  ['a'] = &all,	 ['g'] = &grouped };

		if (c == 'l')
			path = optarg;
		else if (numbers[c & 127])
			*numbers[c & 127] = n;
		else
			return 2;
	}
	if (rank >= 0) {
		library = dlopen(path, RTLD_NOW);
		if (!library)
			fprintf(stderr, "%s\n", dlerror());
		return library ? run_rank() : 1;
	}
	for (int i = 0; i < ranks; i++)
		start(argv, i);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
