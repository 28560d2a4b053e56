/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Current activity, for `sonde top`: sums up the records of each interval as they arrive. Memory is bounded regardless
 * of what the targets do: entries that were not used for long are evicted, and named again when they reappear.
 */
#pragma once

#include "model/stacks.h"
#include "model/throttle.h"
#include "schema/schema.h"

struct live;
struct names;

/* A GIL: an interpreter of a process, or all of its interpreters before 3.12. */
struct live_gil {
	u32 pid;
	u32 number; /* in its process, from 0, in the order of appearance */
	char name[16]; /* of the process */
	double load_percent; /* percentage of the interval in which at least one thread waited */
	u64 waits, wait_ns; /* timed waits, of a switch interval at most; estimated while only slices are measured */
	u32 threads; /* number of threads that waited */
	u32 deepest; /* most threads that waited at once; 0: not known */
};

/* A holder and a waiter, by function. */
struct live_pair {
	u32 pid;
	char holder[160], waiter[160];
	u64 waits, wait_ns;
	double share_percent; /* of all waiting in the interval */
};

struct live_function {
	char name[160];
	double self_percent, total_percent; /* of the CPU time of all samples in the interval */
	u64 self_ns, total_ns;
};

enum live_activity {
	LIVE_CPU, /* on a CPU, by samples */
	LIVE_DISK, /* waited for a disk */
	LIVE_LOCK, /* waited for a futex */
	LIVE_PEER, /* waited in read(), recvfrom(), poll() and the like */
};

/* Time of a process's threads in one activity */
struct live_process {
	u32 pid;
	enum live_activity activity;
	/* of LIVE_LOCK and LIVE_PEER: of the library functions that the user's code called */
	u8 rule; /* the last one that is not 0, of live__new's wait_rule */
	u8 lock; /* enum lock_kind by native functions */
	u32 threads; /* number of those that ran, or waited, for a twentieth of the interval */
	u64 ns; /* of these threads */
	char function[160]; /* the user's own function with most of it */
	u64 function_ns;
	char ended_by[160]; /* of LIVE_LOCK: the user's own function that ended most of these waits; "": not known */
	u64 ended_by_ns;
};

struct live_view {
	u64 from, to; /* CLOCK_MONOTONIC ns */
	u64 unmeasured_ns; /* the part of it in which waits with a stack were not measured (record --cost-limit) */
	u64 samples, samples_ns;
	bool sliced; /* the GIL was measured for part of the time */
	u64 lost; /* waits for which there was no room */
	/* sorted, the largest first */
	struct live_gil *gils;
	struct live_pair *pairs;
	struct live_function *functions;
	struct live_process *processes;
	struct live_process *waits; /* of waits with a stack (`record --off-cpu`) that may cost time */
	struct throttle *throttles; /* the last count of each process with a quota, without cgroup */
	u32 n_gils, n_pairs, n_functions, n_processes, n_waits, n_throttles;
};

/*
 * wait_rule: returns what a Python function of a library waits for, as a number that is passed on in live_process.rule;
 * 0: not known. NULL: it is not known of any function.
 */
int live__new(struct live **out, const struct schema *schema, u8 (*wait_rule)(const struct stack_frame *f));
void live__free(struct live *l);
/* Adds one record; those of families that no figure is made of cost next to nothing. 0 or -ENOMEM. */
int live__feed(struct live *l, const void *record, u32 size);
/* Says for how long, since the last live__cut, waits with a stack were not measured. */
void live__set_unmeasured(struct live *l, u64 ns);
/*
 * Sums up the records since the last call, as a view that is valid until the next one. now: CLOCK_MONOTONIC ns. 0
 * or -ENOMEM.
 */
int live__cut(struct live *l, u64 now, struct live_view *out);
/* Names of processes, valid until the next live__feed. */
const struct names *live__names(const struct live *l);
