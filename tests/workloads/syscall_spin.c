// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* "getppid 1000 20" on stdin: prints ns per call of each of 20 batches of 1000 calls; for tests/bench. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(void)
{
	int calls, batches, fd = open("/dev/zero", O_RDONLY), word = 1;
	char name[32], buf[8];

	printf("ready\n");
	fflush(stdout);
	while (scanf("%31s %d %d", name, &calls, &batches) == 3) {
		for (int b = 0; b < batches; b++) {
			uint64_t from = now();

			for (int i = 0; i < calls; i++) {
				if (*name == 'g')
					syscall(SYS_getppid);
				else if (*name == 'r')
					syscall(SYS_read, fd, buf, 1);
				else /* refused, as the futex has another value */
					syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
			}
			printf("%.1f ", (double)(now() - from) / calls);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
