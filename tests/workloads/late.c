// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * late NAME: the second thread repeatedly sleeps for a millisecond and exchanges a lock with the third. After a line on
 * stdin the process takes the name NAME, and ends with the next line. Prints the second thread's tid.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void nap(long ns)
{
	const struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

static void *work(void *arg)
{
	if (arg) {
		printf("thread %ld\n", syscall(SYS_gettid));
		fflush(stdout);
	}
	for (;;) {
		pthread_mutex_lock(&mutex);
		nap(1000000);
		pthread_mutex_unlock(&mutex);
		nap(10000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t a, b;
	char line[8];

	pthread_create(&a, NULL, work, argv);
	pthread_create(&b, NULL, work, NULL);
	if (argc < 2 || !fgets(line, sizeof(line), stdin))
		return 1;
	prctl(PR_SET_NAME, argv[1]);
	return !fgets(line, sizeof(line), stdin);
}
