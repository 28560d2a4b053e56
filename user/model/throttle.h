/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much the CPU quota of a cgroup held a process back. No other file decodes the kind sched_throttle. */
#pragma once

#include "model/query.h"

/* What the kernel counted for one process, about a second at a time, as in struct sched_throttle */
struct throttle {
	u32 pid;
	u64 since, time; /* the counts are of this time */
	u64 quota, period; /* ns */
	u64 throttled; /* ns, summed over CPUs */
	u64 periods, throttled_periods;
	const char *cgroup; /* not terminated; valid during the call */
	u32 cgroup_len;
};

/* Did the quota throttle the process in most periods? Then it delayed each of the runnable threads. */
static inline bool throttle__in_most(u64 throttled_periods, u64 periods)
{
	return throttled_periods && 2 * throttled_periods >= periods;
}

/* Calls fn for each record of the selected time and processes. Returns 0, fn's first other result or negative errno. */
int throttles__read(const struct query *q, int (*fn)(const struct throttle *t, void *arg), void *arg);
