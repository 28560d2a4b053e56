// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Known futex waits. Prints the number, object, times, holder and waker of each. Waits
 * for a line first.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	20
#define WAITERS 4
#define NAP_US	20000

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int gettid_(void)
{
	return (int)syscall(SYS_gettid);
}

/* Waits until the thread sleeps in a futex call. */
static void until_waiting(int pid, int tid)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	while (strncmp(line, "202 ", 4)) {
		usleep(500);
		f = fopen(path, "r");
		if (!f || !fgets(line, sizeof(line), f))
			*line = '\0';
		if (f)
			fclose(f);
	}
}

static long futex(int *word, int op, int value, const struct timespec *t)
{
	return syscall(SYS_futex, word, op, value, t, NULL, 0);
}

static int word;
static volatile int waiter_tid;

static __attribute__((noinline)) void wait_once(int *at)
{
	uint64_t from = now();
	long ret = futex(at, FUTEX_WAIT_PRIVATE, 0, NULL);

	printf("wait %d %p %llu %llu %ld\n", gettid_(), (void *)at, (unsigned long long)from, (unsigned long long)now(),
	       ret < 0 ? -(long)errno : 0);
}

static void *woken(void *arg)
{
	waiter_tid = gettid_();
	for (int i = 0; i < ROUNDS; i++)
		wait_once(&word);
	return NULL;
}

/* ROUNDS waits, each ended by the main thread. */
static void plain(void)
{
	pthread_t t;

	pthread_create(&t, NULL, woken, NULL);
	while (!waiter_tid)
		usleep(100);
	for (int i = 0; i < ROUNDS; i++) {
		until_waiting(getpid(), waiter_tid);
		usleep(NAP_US / 4);
		futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL);
	}
	pthread_join(t, NULL);
	printf("plain %d %p\n", waiter_tid, (void *)&word);
}

/* The futex's value has changed; the timeout expires. */
static void no_waker(void)
{
	struct timespec t = { .tv_nsec = 2000000 };

	word = 1;
	for (int i = 0; i < ROUNDS; i++)
		wait_once(&word);
	word = 0;
	for (int i = 0; i < ROUNDS; i++)
		if (futex(&word, FUTEX_WAIT_PRIVATE, 0, &t) == 0 || errno != ETIMEDOUT)
			abort();
}

static void on_signal(int sig)
{
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int other = 0, parent = getpid();
	pid_t child;

	sigaction(SIGUSR1, &sa, NULL);
	fflush(stdout);
	child = fork();
	if (!child) {
		until_waiting(parent, parent);
		kill(parent, SIGUSR1);
		_exit(0);
	}
	if (futex(&other, FUTEX_WAIT_PRIVATE, 0, NULL) != -1 || errno != EINTR)
		abort();
	waitpid(child, NULL, 0);
	printf("interrupted %p\n", (void *)&other);
}

struct convoy {
	pthread_mutex_t *mutex;
	volatile int tid;
};

static __attribute__((noinline)) int take(pthread_mutex_t *m)
{
	volatile int ret = pthread_mutex_lock(m);

	return ret;
}

static void *in_convoy(void *arg)
{
	struct convoy *c = arg;

	c->tid = gettid_();
	take(c->mutex);
	pthread_mutex_unlock(c->mutex);
	return NULL;
}

/* WAITERS threads wait for a mutex that this thread holds. */
static void convoy(const char *name, int protocol, int robust)
{
	static pthread_mutex_t mutexes[8];
	static int used;
	struct convoy c[WAITERS] = { 0 };
	pthread_t t[WAITERS];
	pthread_mutexattr_t a;
	pthread_mutex_t *m = &mutexes[used++];

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setrobust(&a, robust);
	pthread_mutex_init(m, &a);
	pthread_mutex_lock(m);
	for (int i = 0; i < WAITERS; i++) {
		c[i].mutex = m;
		pthread_create(&t[i], NULL, in_convoy, &c[i]);
		while (!c[i].tid)
			usleep(100);
		until_waiting(getpid(), c[i].tid);
		printf("waiter %s %d\n", name, c[i].tid);
	}
	usleep(NAP_US);
	pthread_mutex_unlock(m);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(t[i], NULL);
	printf("convoy %s %p %d\n", name, (void *)m, getpid());
}

static void *sleeper(void *arg)
{
	*(volatile int *)arg = gettid_();
	/* the main thread already waits for this thread's end */
	until_waiting(getpid(), getpid());
	return NULL;
}

static void join(void)
{
	volatile int tid = 0;
	pthread_t t;

	pthread_create(&t, NULL, sleeper, (void *)&tid);
	pthread_join(t, NULL);
	printf("join %d\n", tid);
}

/* A wait that another process ends. */
static void shared(void)
{
	int *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int parent = getpid();
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		until_waiting(parent, parent);
		futex(at, FUTEX_WAKE, 1, NULL);
		_exit(0);
	}
	if (futex(at, FUTEX_WAIT, 0, NULL))
		abort();
	waitpid(child, NULL, 0);
	printf("shared %p %d\n", (void *)at, child);
}

/* struct futex_waitv and flags of include/uapi/linux/futex.h, Linux 6.7 */
struct waiter {
	uint64_t value, address;
	uint32_t flags, reserved;
};
#define SYS_FUTEX_REQUEUE 456
#define SIZE_U32	  2
#define PRIVATE		  128

static void *waits_on(void *arg)
{
	waiter_tid = gettid_();
	futex(arg, FUTEX_WAIT_PRIVATE, 0, NULL);
	return NULL;
}

/* A wait that futex_requeue() ends. Its arguments are two futexes: it wakes one waiter of the first. */
static void requeued(void)
{
	static int from, to;
	struct waiter two[2] = { { 0, (uintptr_t)&from, SIZE_U32 | PRIVATE, 0 },
				 { 0, (uintptr_t)&to, SIZE_U32 | PRIVATE, 0 } };
	pthread_t t;
	long n;

	waiter_tid = 0;
	pthread_create(&t, NULL, waits_on, &from);
	while (!waiter_tid)
		usleep(100);
	until_waiting(getpid(), waiter_tid);
	n = syscall(SYS_FUTEX_REQUEUE, two, 0, 1, 0);
	if (n < 0 && errno == ENOSYS)
		futex(&from, FUTEX_WAKE_PRIVATE, 1, NULL);
	else if (n != 1)
		abort();
	pthread_join(t, NULL);
	printf("requeued %s %p\n", n == 1 ? "by" : "ENOSYS", (void *)&from);
}

/* A wait that no thread ends. */
static void *forever(void *arg)
{
	static int stuck;

	printf("stuck %d %p\n", gettid_(), (void *)&stuck);
	waiter_tid = gettid_();
	futex(&stuck, FUTEX_WAIT_PRIVATE, 0, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	char line[8];
	pthread_t t;

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (argc > 1) {
		convoy("normal", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
		pthread_create(&t, NULL, forever, NULL);
		while (!waiter_tid)
			usleep(100);
		until_waiting(getpid(), waiter_tid);
		fflush(stdout);
		sleep(atoi(argv[1]));
		return 0;
	}
	plain();
	no_waker();
	interrupted();
	convoy("normal", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
	convoy("pi", PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
	convoy("robust", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
	join();
	shared();
	requeued();
	waiter_tid = 0;
	pthread_create(&t, NULL, forever, NULL);
	while (!waiter_tid)
		usleep(100);
	until_waiting(getpid(), waiter_tid);
	return 0;
}
