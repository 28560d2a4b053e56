// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs into which nothing can or should be loaded, or only with care: inject_odd WHAT [LIBRARY]. Prints "ready
 * PID", waits for a line on stdin, and prints the results of its checks.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int handled;

static void on_signal(int sig)
{
	handled++;
}

/* Denies one system call, with an error or SIGSYS. */
static void filter(int nr, unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(2);
}

static void sleeps_long(void)
{
	sleep(60);
}

static const char *library;

static void *loads(void *arg)
{
	dlopen(library, RTLD_NOW);
	return NULL;
}

static void ready(pid_t pid)
{
	printf("ready %d\n", pid);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;
	char line[64];

	library = argc > 2 ? argv[2] : NULL;
	if (!strcmp(what, "docker")) {
		/* like a container's filter: an error for unknown and dangerous system calls */
		filter(__NR_mount, SECCOMP_RET_ERRNO | EPERM);
		filter(__NR_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	} else if (!strcmp(what, "kills")) {
		filter(__NR_mprotect, SECCOMP_RET_KILL_PROCESS);
	} else if (!strcmp(what, "denies")) {
		filter(__NR_mmap, SECCOMP_RET_ERRNO | EPERM);
	} else if (!strcmp(what, "ignores")) {
		signal(SIGSEGV, SIG_IGN);
	} else if (!strcmp(what, "vfork")) {
		pid_t pid = vfork();

		if (!pid) {
			/* only system calls, as the memory is the parent's */
			char text[32] = "ready 0\n";

			syscall(SYS_write, 1, text, strlen(text));
			for (;;)
				syscall(SYS_pause);
		}
		return 0;
	} else if (!strcmp(what, "forks")) {
		pthread_atfork(sleeps_long, NULL, NULL);
		ready(getpid());
		fork();
		return 0;
	} else if (!strcmp(what, "loads")) {
		/* another thread holds the loader's lock while the library's constructor sleeps */
		signal(SIGUSR1, on_signal);
		pthread_create(&thread, NULL, loads, NULL);
		usleep(300000);
	}
	errno = 99;
	ready(getpid());
	while (!fgets(line, sizeof(line), stdin) && errno == EINTR)
		clearerr(stdin);
	printf("handled %d errno %d\n", handled, errno);
	return 0;
}
