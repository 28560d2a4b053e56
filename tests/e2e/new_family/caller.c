// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * caller CALLS: at each line of its input, that many calls of tiny_work with 1, 2, 3 .. bytes, and a fork; ends with
 * its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int tiny_work(void *data, size_t bytes);

int main(int argc, char **argv)
{
	int i, calls = argc > 1 ? atoi(argv[1]) : 1;
	unsigned char byte = 0;
	char line[8];

	while (fgets(line, sizeof(line), stdin)) {
		for (i = 0; i < calls; i++)
			tiny_work(&byte, i + 1);
		if (!fork())
			_exit(0);
		wait(NULL);
		puts("called");
		fflush(stdout);
	}
	return 0;
}
