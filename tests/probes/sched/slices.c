// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * slices: threads that measure themselves when they sleep, beside two that switch all the time and one that waits
 * from start to end. At SIGTERM it prints "waiter TID", then each sleep as "slept TID FROM TO AWAKE": times of
 * CLOCK_MONOTONIC, and for how long it ran or waited for a CPU meanwhile, in ns.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLEEPERS   2
#define SLEEPS_MAX 10000

static volatile sig_atomic_t has_ended;
static int to[2], from[2], never[2];
static struct sleeper {
	pthread_t thread;
	pid_t tid;
	int n;
	long long start[SLEEPS_MAX], end[SLEEPS_MAX], awake[SLEEPS_MAX];
} sleepers[SLEEPERS];

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The ns for which the thread has run and waited for a CPU. */
static long long counted(int fd)
{
	long long run = 0, wait = 0;
	char line[64];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	return sscanf(line, "%lld %lld", &run, &wait) == 2 ? run + wait : 0;
}

static void *sleeper(void *arg)
{
	struct sleeper *s = arg;
	struct timespec nap = { .tv_nsec = 3000000 + 4000000 * (s - sleepers) };
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);

	s->tid = syscall(SYS_gettid);
	while (!has_ended && s->n < SLEEPS_MAX) {
		for (long long end = now() + 1000000; now() < end;)
			;
		s->awake[s->n] = -counted(fd);
		s->start[s->n] = now();
		nanosleep(&nap, NULL);
		s->end[s->n] = now();
		s->awake[s->n++] += counted(fd);
	}
	return NULL;
}

static void *answer(void *arg)
{
	char c;

	(void)arg;
	while (read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1)
		;
	return NULL;
}

static void *waiter(void *arg)
{
	char c;

	*(pid_t *)arg = syscall(SYS_gettid);
	return read(never[0], &c, 1) < 0 ? arg : NULL;
}

static void end(int signal)
{
	(void)signal;
	has_ended = 1;
}

int main(void)
{
	pthread_t answering, waiting;
	pid_t waiter_tid = 0;
	char c = 'x';

	signal(SIGTERM, end);
	if (pipe(to) || pipe(from) || pipe(never))
		return 1;
	pthread_create(&answering, NULL, answer, NULL);
	pthread_create(&waiting, NULL, waiter, &waiter_tid);
	for (int i = 0; i < SLEEPERS; i++)
		pthread_create(&sleepers[i].thread, NULL, sleeper, &sleepers[i]);
	while (!has_ended)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			return 1;
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(sleepers[i].thread, NULL);
	printf("waiter %d\n", waiter_tid);
	for (int i = 0; i < SLEEPERS; i++)
		for (int k = 0; k < sleepers[i].n; k++)
			printf("slept %d %lld %lld %lld\n", sleepers[i].tid, sleepers[i].start[k], sleepers[i].end[k],
			       sleepers[i].awake[k]);
	return 0;
}
