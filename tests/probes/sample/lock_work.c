// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* For five seconds two threads take turns to hold a lock while they sleep; a child of one thread sleeps as often. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void hold_lock(void)
{
	pthread_mutex_lock(&lock);
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
}
