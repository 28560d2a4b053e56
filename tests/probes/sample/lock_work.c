// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For five seconds two threads take turns to hold a lock while they sleep; a child of one thread sleeps as often.
 * Prints the child's pid, at the end "wait FROM TO" for each wait for the lock (CLOCK_MONOTONIC, ns), and "end".
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((noinline)) static void hold_lock(void)
{
	static long long from[100], to[100];
	static int n;
	long long asked = now();

	pthread_mutex_lock(&lock);
	from[n] = asked;
	to[n++] = now();
	for (int i = 0; n == 100 && i < n; i++)
		printf("wait %lld %lld\n", from[i], to[i]);
	usleep(50000);
	pthread_mutex_unlock(&lock);
	usleep(1000);
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < 50; i++)
		hold_lock();
	return arg;
}

int main(void)
{
	pthread_t thread;
	pid_t child = fork();

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child)
		usleep(50000);
	printf("%d\n", child);
	fflush(stdout);
	getchar();
	pthread_create(&thread, NULL, take_turns, NULL);
	take_turns(NULL);
	pthread_join(thread, NULL);
	printf("end\n");
}
