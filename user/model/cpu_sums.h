/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How processes used CPUs, waited for them and were throttled, as sums over the scheduler's spans. */
#pragma once

#include "model/sched_span.h"
#include "model/throttle.h"
#include "util/map.h"

/* Of one process: where it ran */
struct on_cpus {
	u64 run_ns, main_cpu_ns;
	u32 main_cpu; /* the CPU on which it ran for main_cpu_ns, longer than on any other */
	u32 spans;
	u64 allowed_ns; /* of run_ns: it is known how many CPUs it might use */
	u64 restricted_ns; /* of these: not all of the machine's */
	u32 allowed; /* the largest number of CPUs in that time */
	u32 priority; /* of its last span on a CPU, as in struct sched_run; 0: not known */
};

struct cpu_key {
	u32 pid, cpu;
};

struct taker_key {
	u32 pid; /* that was preempted */
	u32 tid; /* by this thread */
};

struct quota_key {
	u32 pid;
	char cgroup[192]; /* a cgroup of the process, or one above it */
};

struct other_name {
	char text[16]; /* terminated */
};

struct cpu_sums {
	u32 online; /* CPUs of the machine, 0: not known */
	struct map run; /* struct cpu_key -> u64 ns that a process ran on a CPU */
	struct map processes; /* u32 pid -> struct on_cpus */
	struct map waited; /* struct cpu_key -> u64 ns that it waited for one */
	struct map takers; /* struct taker_key -> u64: how often the thread preempted it */
	struct map others; /* struct other_name -> u64 ns that processes of this name ran, which were not recorded */
	struct map quotas; /* struct quota_key -> struct throttle: sums of the counts, without the time and cgroup */
};

void cpu_sums__init(struct cpu_sums *c, u32 online);
void cpu_sums__free(struct cpu_sums *c);
/* Adds the part of a span that lies in the time of q, which ends the span if it contains its end. 0 or -ENOMEM. */
int cpu_sums__add(struct cpu_sums *c, const struct sched_span *s, const struct query *q);
int cpu_sums__add_throttle(struct cpu_sums *c, const struct throttle *t);
/* Adds the CPU time of processes that were not recorded, in the time of q. 0 or negative errno. */
int cpu_sums__read_others(struct cpu_sums *c, const struct query *q);
