// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Causes every kind of event of a process once, and prints one line per event. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *self;

static pid_t child_that(void (*does)(int), int arg)
{
	pid_t pid = fork();

	if (!pid) {
		does(arg);
		_exit(99);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static void exits(int code)
{
	_exit(code);
}

static void dies(int sig)
{
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	raise(sig);
}

static void execs(int unused)
{
	(void)unused;
	execl(self, self, "execed", "two words", "line\nbreak", NULL);
}

static void *exec_from_thread(void *arg)
{
	(void)arg;
	printf("old_tid %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	execs(0);
	return NULL;
}

static void execs_from_thread(int unused)
{
	pthread_t t;

	(void)unused;
	pthread_create(&t, NULL, exec_from_thread, NULL);
	pause();
}

static void *named(void *arg)
{
	*(long *)arg = syscall(SYS_gettid);
	prctl(PR_SET_NAME, "\xff\"odd\n\\name");
	return NULL;
}

/* True if the process's first thread has ended: its state, which follows its name in stat, is Z. */
static int leader_ended(void)
{
	char text[256], *name_end;
	FILE *f = fopen("/proc/self/stat", "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	name_end = strrchr(text, ')');
	return name_end && name_end[1] && name_end[2] == 'Z';
}

static void *stays(void *arg)
{
	long tid;

	named(&tid);
	printf("inner_tid %ld\n", tid);
	fflush(stdout);
	while (!leader_ended())
		usleep(1000);
	return arg;
}

static void leads_and_ends(int unused)
{
	pthread_t t;

	(void)unused;
	/* the first thread ends before another one, with which the process ends */
	pthread_create(&t, NULL, stays, NULL);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	pthread_t t;
	char line[16];
	long tid;

	self = argv[0];
	if (argc > 1)
		return 7;
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int code = 0; code < 256; code += 51)
		printf("exit %d %d\n", child_that(exits, code), code);
	printf("signal %d %d\n", child_that(dies, SIGTERM), SIGTERM);
	printf("signal %d %d\n", child_that(dies, SIGSEGV), SIGSEGV);
	printf("signal %d %d\n", child_that(dies, SIGKILL), SIGKILL);
	fflush(stdout);
	printf("exec %d\n", child_that(execs, 0));
	fflush(stdout);
	printf("thread_exec %d\n", child_that(execs_from_thread, 0));
	fflush(stdout);
	printf("leader %d\n", child_that(leads_and_ends, 0));
	prctl(PR_SET_NAME, "renamed");
	pthread_create(&t, NULL, named, &tid);
	pthread_join(t, NULL);
	/*
	 * older kernels let a join return before the tracepoint of the thread's end, and this process could end in
	 * between
	 */
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		usleep(1000);
	printf("thread %ld\n", tid);
	return 42;
}
