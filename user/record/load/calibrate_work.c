// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/load/calibrate.h"
#include "util/timing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS 20 /* cheap system calls per round */
#define PAGES 8

static long futex(u32 *word, int op, u32 value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* Two threads that wake each other in turn: switches, wake-ups and futex waits. */
struct pair {
	u32 turn, rounds;
};

static void *other_thread(void *arg)
{
	const struct timespec soon = { .tv_nsec = 5000000 };
	struct pair *p = arg;

	for (u32 i = 0; i < p->rounds; i++) {
		while (!__atomic_load_n(&p->turn, __ATOMIC_ACQUIRE))
			if (futex(&p->turn, FUTEX_WAIT, 0, &soon) && errno == ETIMEDOUT)
				return NULL;
		__atomic_store_n(&p->turn, 0, __ATOMIC_RELEASE);
		futex(&p->turn, FUTEX_WAKE, 1, NULL);
	}
	return NULL;
}

static void take_turns(void)
{
	const struct timespec soon = { .tv_nsec = 5000000 };
	struct pair p = { .rounds = 10 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, other_thread, &p))
		return;
	for (u32 i = 0; i < p.rounds; i++) {
		__atomic_store_n(&p.turn, 1, __ATOMIC_RELEASE);
		futex(&p.turn, FUTEX_WAKE, 1, NULL);
		while (__atomic_load_n(&p.turn, __ATOMIC_ACQUIRE))
			if (futex(&p.turn, FUTEX_WAIT, 1, &soon) && errno == ETIMEDOUT)
				break;
	}
	pthread_join(thread, NULL);
}

static void touch_memory(void)
{
	size_t page = sysconf(_SC_PAGESIZE), len = PAGES * page;
	/* cppcheck-suppress invalidFunctionArg */
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	for (u32 i = 0; i < PAGES; i++)
		*(volatile char *)(p + i * page) = 1;
	munmap(p, len);
}

/* Connects to itself on a port that the kernel chooses, and sends a few bytes. */
static void connect_to_itself(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), in = -1;
	int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);
	char buf[64] = "";

	if (server >= 0 && out >= 0 && !bind(server, (struct sockaddr *)&addr, sizeof(addr)) && !listen(server, 1) &&
	    !getsockname(server, (struct sockaddr *)&addr, &len) &&
	    !connect(out, (struct sockaddr *)&addr, sizeof(addr)))
		in = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	for (u32 i = 0; in >= 0 && i < 4; i++)
		if (send(out, buf, sizeof(buf), MSG_NOSIGNAL) < 0 || recv(in, buf, sizeof(buf), 0) < 0)
			break;
	close(in);
	close(out);
	close(server);
}

/* Reads without the page cache, so that the disk is used; does nothing if the file system can't do that. */
static void read_directly(int fd, void *aligned, u32 round)
{
	if (fd >= 0 && pread(fd, aligned, 4096, round % 16 * 4096) < 0)
		return;
}

static void work_for(u64 ns)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC | O_DIRECT);
	u64 end = timing__now() + ns;
	void *aligned = NULL;

	if (posix_memalign(&aligned, 4096, 4096))
		aligned = NULL;
	for (u32 round = 0; timing__now() < end; round++) {
		for (u32 i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		take_turns();
		touch_memory();
		connect_to_itself();
		if (aligned)
			read_directly(fd, aligned, round);
	}
	free(aligned);
	if (fd >= 0)
		close(fd);
}

void calibrate__work_in_child(u64 ns)
{
	pid_t pid = fork();

	if (!pid) {
		work_for(ns);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
