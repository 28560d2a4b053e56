// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of tests/fakes/libcudart.c that end in every possible way.
 *
 *	fake_calls LIBRARY	prints "ready", waits for a line, calls, prints
 *				"PID MAIN-TID BLOCKED-TID ENDED-TID CHILD", sleeps
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *lib;
static jmp_buf back;
static int depth;
static int (*launch_host)(void *, void (*)(void *), void *);
static pid_t blocked, ended;

static void *find(const char *name)
{
	void *p = dlsym(lib, name);

	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return p;
}

#define F(type, name) ((type)find(name))

static void results(void)
{
	void *p;
	float ms;

	F(int (*)(void **, size_t), "cudaMalloc")(&p, 100);
	F(int (*)(void **), "cudaStreamCreate")(&p);
	F(int (*)(void **, const void *), "cudaMemPoolCreate")(&p, NULL);
	F(int (*)(void **, void *, unsigned long long), "cudaGraphInstantiate")(&p, (void *)0x9191, 0);
	F(int (*)(void *, void **), "cudaStreamEndCapture")((void *)0x5151, &p);
	F(int (*)(float *, void *, void *), "cudaEventElapsedTime")(&ms, (void *)0xe1, (void *)0xe2);
	F(int (*)(void *), "cudaStreamDestroy")((void *)0x5151);
	F(int (*)(void), "cudaDeviceSynchronize")();
}

static void jump_out(void *data)
{
	longjmp(back, 1);
}

static void again(void *data)
{
	if (--depth > 0)
		launch_host((void *)0x5151, again, (void *)(uintptr_t)depth);
}

static void end_thread(void *data)
{
	/* not pthread_exit, which unwinds the stack: a return address replaced by a uretprobe can't be unwound */
	syscall(SYS_exit, 0);
}

static void execute(void *data)
{
	execl("/bin/true", "true", NULL);
}

static void *block(void *arg)
{
	blocked = syscall(SYS_gettid);
	F(int (*)(void *), "cudaEventSynchronize")((void *)0xe3);
	return NULL;
}

static void *end_inside(void *arg)
{
	ended = syscall(SYS_gettid);
	launch_host((void *)0x5152, end_thread, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t a, b;
	char line[8];
	pid_t child;
	void *p;

	lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!lib)
		return 2;
	launch_host = F(int (*)(void *, void (*)(void *), void *), "cudaLaunchHostFunc");
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	results();
	F(int (*)(void *, void *, unsigned), "cudaEventRecordWithFlags")((void *)0xe1, (void *)0x5150, 1);
	F(int (*)(void *), "cudaFreeHost")((void *)0xd2);
	if (!setjmp(back))
		launch_host((void *)0x5153, jump_out, NULL);
	F(int (*)(void **, size_t), "cudaMalloc")(&p, 200);
	depth = 20;
	launch_host((void *)0x5151, again, (void *)20);
	F(int (*)(void **, size_t), "cudaMalloc")(&p, 300);
	pthread_create(&a, NULL, block, NULL);
	pthread_create(&b, NULL, end_inside, NULL);
	pthread_join(b, NULL);
	child = fork();
	if (!child) {
		launch_host((void *)0x5154, execute, NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	usleep(100000);
	printf("%d %d %d %d %d\n", getpid(), (int)syscall(SYS_gettid), blocked, ended, child);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	return 0;
}
