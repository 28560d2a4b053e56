// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prints the ns of a push and pop, the median and 99th percentile of rounds: nvtx_cost PAIRS ROUNDS PAUSE_US. Each
 * round makes PAIRS of them, and is followed by a pause. Waits for a line on stdin first.
 */
#include <nvtx3/nvToolsExt.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int pairs = atoi(argv[1]), rounds = atoi(argv[2]), pause = atoi(argv[3]);
	double *times = calloc((size_t)rounds, sizeof(*times));
	char line[16];

	nvtxRangePushA("a range of usual length");
	nvtxRangePop();
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < rounds; i++) {
		double begin = now();

		for (int k = 0; k < pairs; k++) {
			nvtxRangePushA("a range of usual length");
			nvtxRangePop();
		}
		times[i] = (now() - begin) / pairs;
		usleep((useconds_t)pause);
	}
	qsort(times, (size_t)rounds, sizeof(*times), compare);
	printf("%.1f %.1f\n", times[rounds / 2], times[rounds * 99 / 100]);
	free(times);
	return 0;
}
