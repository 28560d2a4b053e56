// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/timing.h"

#include "util/test_switch.h"

#include <stdio.h>
#include <time.h>

u64 timing__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

void timing__step(const char *what)
{
	static u64 last;
	u64 now = timing__now();

	if (test_switch__is_set("timing")) {
		/* the first step began with the process: its CPU time is printed */
		struct timespec cpu;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
		fprintf(stderr, "timing: %-24s %8.1f ms\n", what,
			last ? (now - last) / 1e6 : cpu.tv_sec * 1e3 + cpu.tv_nsec / 1e6);
	}
	last = timing__now();
}
