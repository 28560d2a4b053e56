/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums threads' time on and off the CPUs, for report sched and the summary. */
#pragma once

#include "model/stats.h"
#include "report/report.h"

struct sched_key {
	u32 pid, tid;
};

struct sched_waker_key {
	struct sched_key woken, waker;
};

struct sched_thread {
	u64 run_ns; /* on a CPU */
	u64 runnable_ns; /* waited for one */
	u64 sleep_ns, blocked_ns, other_ns; /* waited for something else */
	u64 charged_ns, waited_ns; /* run and runnable by the kernel's count, without time stolen by a hypervisor */
	u64 switches, preempted;
	struct stats latency; /* ns from each wake-up to running */
	struct sched_key waker; /* the thread that woke it most often */
	u64 waker_count;
};

struct sched_report {
	struct map threads; /* struct sched_key -> struct sched_thread */
	struct map wakers; /* struct sched_waker_key -> u64 */
	struct stats_pool pool;
};

/* Returns 0 or negative errno; call sched_report__free in any case. */
int sched_report__read(struct sched_report *s, const struct query *args);
void sched_report__free(struct sched_report *s);
