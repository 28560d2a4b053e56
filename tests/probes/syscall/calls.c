// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a known list of system calls with syscall(), so that the C library adds none,
 * and prints the start and end of each by its own clock. The output is buffered in
 * memory until the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAID	65536
#define THREADS 4
#define ROUNDS	50

static struct said {
	int tid, nr;
	uint64_t from, to;
	long ret;
} said[SAID];
static int n_said;

static uint64_t now(void)
{
	struct timespec t;

	/* in the vDSO, so no system call */
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static _Thread_local int me;

static long call6(int nr, long a, long b, long c, long d, long e, long f)
{
	struct said *s = &said[__atomic_fetch_add(&n_said, 1, __ATOMIC_RELAXED)];
	long ret;

	s->tid = me;
	s->nr = nr;
	s->from = now();
	ret = syscall(nr, a, b, c, d, e, f);
	s->to = now();
	s->ret = ret < 0 ? -errno : ret;
	return ret;
}

#define CALL(nr, ...)			 CALL_(nr, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(nr, a, b, c, d, e, f, ...) call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static const char *path;

static void files(void)
{
	static char block[4096] __attribute__((aligned(4096)));
	int fd;

	for (int i = 0; i < ROUNDS; i++) {
		fd = CALL(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDWR | O_TRUNC, 0600);
		CALL(SYS_write, fd, block, 4096);
		CALL(SYS_write, fd, block, 100);
		CALL(SYS_pread64, fd, block, 4096, 0);
		CALL(SYS_lseek, fd, 4096, SEEK_SET);
		CALL(SYS_read, fd, block, 4096);
		if (i % 10 == 0)
			CALL(SYS_fsync, fd);
		CALL(SYS_close, fd);
	}
	CALL(SYS_openat, AT_FDCWD, "/nowhere/at/all", O_RDONLY);
	CALL(SYS_close, 1000);
	CALL(SYS_read, 1000, block, 1);
}

/* Longer calls, for durations: 1% of them is more than the cost of reading the clock. */
static void naps(void)
{
	struct timespec t = { .tv_nsec = 3000000 };

	for (int i = 0; i < 20; i++)
		CALL(SYS_nanosleep, &t, NULL);
}

static void sockets(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int listener = CALL(SYS_socket, AF_INET, SOCK_STREAM, 0), client, server;
	char buf[64] = "";

	CALL(SYS_bind, listener, &a, sizeof(a));
	CALL(SYS_listen, listener, 1);
	CALL(SYS_getsockname, listener, &a, &len);
	client = CALL(SYS_socket, AF_INET, SOCK_STREAM, 0);
	CALL(SYS_connect, client, &a, sizeof(a));
	server = CALL(SYS_accept4, listener, NULL, NULL, 0);
	CALL(SYS_sendto, client, buf, 33, 0, NULL, 0);
	CALL(SYS_recvfrom, server, buf, sizeof(buf), 0, NULL, NULL);
	CALL(SYS_close, client);
	CALL(SYS_close, server);
	CALL(SYS_close, listener);
	printf("port %d\n", ntohs(a.sin_port));
}

static void *thread(void *arg)
{
	me = (int)syscall(SYS_gettid);
	for (int i = 0; i < ROUNDS * 10; i++)
		CALL(SYS_getppid);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void on_signal(int sig)
{
}

/* Waits until the process sleeps in this call. */
static void until_in(int pid, int nr)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (!*line || line[0] < '0' || line[0] > '9' || atoi(line) != nr) {
		usleep(1000);
		f = fopen(path, "r");
		if (!f || !fgets(line, sizeof(line), f))
			*line = '\0';
		if (f)
			fclose(f);
	}
}

/* A read that a signal interrupts, and one that is restarted after a signal. */
static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int p[2], again;
	char c;
	struct iovec v = { &c, 1 };

	for (again = 0; again < 2; again++) {
		pid_t child, parent = getpid();

		sa.sa_flags = again ? SA_RESTART : 0;
		sigaction(SIGUSR1, &sa, NULL);
		if (pipe(p))
			abort();
		child = fork();
		if (!child) {
			until_in(parent, again ? SYS_readv : SYS_read);
			kill(parent, SIGUSR1);
			usleep(100000);
			if (again)
				until_in(parent, SYS_readv);
			if (write(p[1], "x", 1) != 1)
				_exit(1);
			_exit(0);
		}
		if (again)
			CALL(SYS_readv, p[0], &v, 1);
		else
			CALL(SYS_read, p[0], &c, 1);
		while (waitpid(child, NULL, 0) < 0)
			;
		close(p[0]);
		close(p[1]);
	}
}

/* seccomp refuses getpriority before it begins. */
static void refused(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		abort();
	for (int i = 0; i < 10; i++)
		CALL(SYS_getpriority, 0, 0);
}

/* 32-bit calls from 64-bit code; -ENOSYS if the kernel does not support them. */
static void compat(void)
{
	long ret;

	for (int i = 0; i < 10; i++)
		__asm__ volatile("int $0x80" : "=a"(ret) : "a"(64 /* getppid */) : "memory");
	printf("compat %ld\n", ret);
}

static void children(const char *self)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = i == 0 ? fork() : vfork();

		if (!child) {
			if (i == 2)
				execl(self, self, "exit", NULL);
			_exit(7);
		}
		waitpid(child, NULL, 0);
		printf("child %s %d\n", i == 0 ? "fork" : i == 1 ? "vfork" : "exec", child);
	}
}

int main(int argc, char **argv)
{
	char line[8];

	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 7;
	if (argc < 2 || !fgets(line, sizeof(line), stdin))
		return 1;
	path = argv[1];
	me = getpid();
	files();
	naps();
	sockets();
	threads();
	signals();
	compat();
	children(argv[0]);
	refused();
	for (int i = 0; i < n_said; i++)
		printf("call %d %d %llu %llu %ld\n", said[i].tid, said[i].nr, (unsigned long long)said[i].from,
		       (unsigned long long)said[i].to, said[i].ret);
	return 0;
}
