/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by cpu.c, which finds why threads waited for a CPU, and cpu_users.c, which finds who had the CPUs meanwhile.
 */
#pragma once

#include "findings/group.h"

/* Of one process: where it ran */
struct on_cpus {
	u64 run_ns, main_cpu_ns;
	u32 main_cpu; /* the CPU with most_ns */
	u32 spans;
	u64 allowed_ns; /* of run_ns: it is known how many CPUs it might use */
	u64 restricted_ns; /* of these: not all of the machine's */
	u32 allowed; /* the largest number of CPUs in that time */
	u32 priority; /* of its last span on a CPU, as in struct sched_run; 0: not known */
};

struct cpu_key {
	u32 pid, cpu;
};

struct spent {
	u64 ns, n;
};

struct taker_key {
	u32 pid; /* that was preempted */
	u32 tid; /* by this thread */
};

struct quota_key {
	u32 pid;
	char cgroup[192]; /* a cgroup of the process, or one above it */
};

struct quota {
	u64 quota, period, throttled, throttled_periods, periods;
};

struct cpus {
	const struct finding_input *in;
	u32 online; /* CPUs of the machine, 0: not known */
	struct map run; /* struct cpu_key -> struct spent: how a process ran on a CPU */
	struct map processes; /* u32 pid -> struct on_cpus */
	struct map waited; /* struct cpu_key -> struct spent: how it waited for one */
	struct map takers; /* struct taker_key -> u64: how often the thread preempted it */
	struct map quotas; /* struct quota_key -> struct quota */
};

/*
 * Adds findings on processes whose samples show at least twice the time on CPUs that the scheduler's events show: these
 * were not recorded, or the threads ran on without one. pids gets the numbers of these processes (u32 -> u8). 0 or
 * -ENOMEM.
 */
int cpus__add_sampled(const struct cpus *c, struct map *pids, struct findings *out);
/* Adds the process that had the CPUs for which the group's threads waited, and whether the kernel prefers it. */
void cpus__add_users(const struct cpus *c, const struct group *g, struct finding *f);
