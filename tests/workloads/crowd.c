// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many processes that do nothing.
 *
 *	crowd N		prints "ready" when all have started; all end with stdin
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pid_t parent = getpid();

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("crowd: fork");
			return 1;
		}
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
