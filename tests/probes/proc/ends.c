// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes whose threads all end at once: ends ROUNDS THREADS. Every second process joins its threads before it ends.
 * Waits for a line on stdin; prints the pid of each process.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *waits(void *arg)
{
	if (arg)
		pause();
	return arg;
}

static void child(int threads, int killed)
{
	pthread_t t[64];

	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, waits, killed ? t : NULL))
			_exit(1);
	for (int i = 0; i < threads && !killed; i++)
		pthread_join(t[i], NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0, threads = argc > 2 ? atoi(argv[2]) : 0, status;
	char line[16];

	if (threads < 1 || threads > 64 || !fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (!pid)
			child(threads, i & 1);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
		printf("%d\n", pid);
	}
	return 0;
}
