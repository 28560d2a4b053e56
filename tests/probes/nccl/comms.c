// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Creates communicators of tests/fakes/libnccl.c, before tracing begins and later in
 * every possible way.
 *
 *	comms LIBRARY	prints "ready", waits for a line, calls, prints its communicators:
 *			`NAME PID ADDRESS`; waits for another line and ends
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct ncclComm *comm_t;
typedef struct {
	char internal[128];
} nccl_id;

static void *lib;

static void *find(const char *name)
{
	void *f = dlsym(lib, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

static int (*all_reduce)(const void *, void *, size_t, int, int, comm_t, void *);
static int (*init_rank)(comm_t *, int, nccl_id, int);
static int (*destroy)(comm_t);

static nccl_id id_of(unsigned long long n)
{
	nccl_id id = { "" };

	memcpy(&id, &n, sizeof(n));
	return id;
}

static void say(const char *name, comm_t comm)
{
	printf("%s %d %llu\n", name, getpid(), (unsigned long long)comm);
	fflush(stdout);
}

static void use(comm_t comm, int count)
{
	all_reduce((void *)1, (void *)2, count, 7, 0, comm, (void *)0x51);
}

static comm_t older[2];

static void *hangs(void *arg)
{
	printf("tid %ld 0\n", syscall(SYS_gettid));
	fflush(stdout);
	use(older[0], 666);
	return NULL;
}

static void made(void)
{
	int (*split)(comm_t, int, int, comm_t *, void *) = find("ncclCommSplit");
	int (*shrink)(comm_t, int *, int, comm_t *, void *, int) = find("ncclCommShrink");
	int (*grow)(comm_t, int, const nccl_id *, int, comm_t *, void *) = find("ncclCommGrow");
	int (*scalable)(comm_t *, int, int, int, nccl_id *, void *) = find("ncclCommInitRankScalable");
	int (*all)(comm_t *, int, const int *) = find("ncclCommInitAll");
	int devices[3] = { 7, 4, 1 }, excluded[1] = { 0 };
	nccl_id id = id_of(0x5ca1ab1e);
	comm_t c[3] = { NULL };

	init_rank(&c[0], 16, id_of(0x1234), 11);
	say("init", c[0]);
	split(c[0], 3, 2, &c[1], NULL);
	say("split", c[1]);
	split(c[0], -1, 0, &c[1], NULL);
	shrink(c[0], excluded, 1, &c[1], NULL, 0);
	say("shrink", c[1]);
	grow(c[0], 17, NULL, -1, &c[1], NULL);
	say("grow", c[1]);
	grow(NULL, 18, &id, 17, &c[1], NULL);
	say("join", c[1]);
	scalable(&c[1], 32, 31, 1, &id, NULL);
	say("scalable", c[1]);
	all(c, 3, devices);
	say("all0", c[0]);
	say("all1", c[1]);
	say("all2", c[2]);
}

static void groups(void)
{
	int (*start)(void) = find("ncclGroupStart"), (*end)(void) = find("ncclGroupEnd");
	comm_t c;

	start();
	init_rank(&c, 64, id_of(0x6109), 63);
	end();
	say("group", c);
	use(c, 1);
	use(c, 2);
	init_rank(&c, 4, id_of(0xa), 1);
	say("first", c);
	use(c, 3);
	destroy(c);
	/* at the same address */
	init_rank(&c, 5, id_of(0xb), 2);
	say("second", c);
	use(c, 4);
}

static void results(void)
{
	int (*error)(comm_t, int *) = find("ncclCommGetAsyncError"), (*unknown)(int) = find("ncclNotYetKnown");
	int (*reg)(comm_t, void *, size_t, void **) = find("ncclCommRegister");
	int (*alloc)(void **, size_t) = find("ncclMemAlloc");
	int (*op)(int *, void *, int, int, comm_t) = find("ncclRedOpCreatePreMulSum");
	int (*bcast)(void *, size_t, int, int, comm_t, void *) = find("ncclBcast");
	const char *(*text)(int) = find("ncclGetErrorString");
	comm_t bad = NULL;
	void *p;
	int n;

	error(older[1], &n);
	reg(older[1], (void *)1, 2, &p);
	alloc(&p, 5);
	op(&n, NULL, 7, 0, older[1]);
	bcast((void *)1, 10, 8, 2, older[1], (void *)0x51);
	unknown(3);
	text(1);
	all_reduce(NULL, NULL, 9, 7, 0, older[1], NULL);
	init_rank(&bad, 2, id_of(1), 2);
	/* invalid communicators: an unmapped address, other data */
	use((comm_t)0x1000, 5);
	use((comm_t)find("ncclSend"), 6);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[8];
	pid_t child;

	lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!lib) {
		fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	all_reduce = find("ncclAllReduce");
	init_rank = find("ncclCommInitRank");
	destroy = find("ncclCommDestroy");
	init_rank(&older[0], 8, id_of(0xfeedf00d), 3);
	init_rank(&older[1], 9, id_of(0xbeef), 4);
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	say("older", older[0]);
	use(older[0], 100);
	use(older[0], 101);
	child = fork();
	if (!child) {
		say("child", older[0]);
		use(older[0], 102);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say("asked", older[1]);
	made();
	groups();
	results();
	if (pthread_create(&thread, NULL, hangs, NULL))
		return 1;
	puts("done 0 0");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	_exit(0);
}
