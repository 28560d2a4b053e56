/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why processes were slow: each process's time off the CPUs by kind of cause, ranked. Waits that cost something come
 * before sleeps and before waiting for others, and these before idling.
 */
#pragma once

#include "model/activity.h"

enum cause_kind {
	CAUSE_RUN, /* ran on a CPU */
	CAUSE_GIL,
	CAUSE_LOCK, /* waited for a lock that another thread held */
	CAUSE_DISK,
	CAUSE_MEMORY, /* waited for the kernel to reclaim or compact memory */
	CAUSE_QUOTA, /* runnable, but throttled by the quota of its cgroup */
	CAUSE_CPU, /* runnable while other threads used the CPUs */
	CAUSE_NETWORK, /* connecting, sending */
	CAUSE_LIBRARY, /* CUDA, NCCL, .. */
	CAUSE_CALL, /* another system call that does work */
	CAUSE_BLOCKED, /* uninterruptible in no recorded call */
	CAUSE_SLEEP, /* nanosleep and the like */
	CAUSE_PEER, /* waited for data from another thread or machine: a pipe, a socket */
	CAUSE_FUTEX, /* a lock or a condition, which only family lock distinguishes */
	CAUSE_IDLE, /* waited for something to do: poll, accept, a condition, a child */
	CAUSE_ASLEEP, /* asleep in no recorded call */
	CAUSE_KINDS
};

struct causes;

/* 0 or -ENOMEM */
int causes__new(struct causes **out, const struct query *args);
void causes__free(struct causes *c);
/* Takes each interval; those of an unknown state do not count. 0 or -ENOMEM. */
int causes__add(struct causes *c, const struct activity_interval *i);
/* Call after the last interval of `activity` was added: ranks the causes. 0 or negative errno. */
int causes__rank(struct causes *c, const struct activity *activity);

/* causes_kinds.c. For ACTIVITY_TRANSFER, cause_files__find decides afterwards. */
enum cause_kind cause__kind_of(enum activity_cause cause);
/* "lock", for CSV and JSON */
const char *cause__key(enum cause_kind kind);
/* 0: costs time, 1: sleeps and waits for peers, 2: idles, CAUSE_TIER_LITTLE: took little time */
u32 cause__tier(enum cause_kind kind);
#define CAUSE_TIER_LITTLE 3

/* A kind of cause in one process */
struct cause {
	u32 pid, threads; /* threads: how many it delayed */
	enum cause_kind kind;
	u32 tier; /* the lower, the more it explains */
	u64 ns, wall_ns, times; /* summed over these threads: time of this kind, all their time, waits of this kind */
	const char *call; /* name of the wait that took most of ns, NULL: none */
	u64 call_ns, call_times; /* that wait's, over the same threads */
	const char *file; /* of a transfer, NULL: not known */
};

/* The i-th by rank, beginning with the cause that explains most; NULL: there are fewer */
const struct cause *causes__ranked(const struct causes *c, u32 i);

/* causes_files.c: for each process and system call, the file on which its transfers spent most time */
struct cause_files;
int cause_files__new(struct cause_files **out, const struct query *args);
void cause_files__free(struct cause_files *f);
/* Returns the kind of a transfer that does not wait for a disk, and its file in *name, NULL: not known. */
enum cause_kind cause_files__find(const struct cause_files *f, u32 pid, const char *call, const char **name);
