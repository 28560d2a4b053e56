// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/timing.h"

#include "util/test_switch.h"

#include <stdio.h>
#include <time.h>

u64 timing__clock(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? 0 : (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

u64 timing__now(void)
{
	return timing__clock(CLOCK_MONOTONIC);
}

void timing__step(const char *what)
{
	static u64 last;
	u64 now = timing__now();

	if (test_switch__is_set("timing")) {
		/* the first step began with the process: its CPU time is printed */
		fprintf(stderr, "timing: %-24s %8.1f ms\n", what,
			(last ? now - last : timing__clock(CLOCK_PROCESS_CPUTIME_ID)) / 1e6);
	}
	last = timing__now();
}
