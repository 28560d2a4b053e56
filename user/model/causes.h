/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why processes were slow: each process's time off the CPUs by kind of cause, ranked. Waits that cost something come
 * before sleeps and before waiting for others, and these before idling.
 */
#ifndef SONDE_MODEL_CAUSES_H
#define SONDE_MODEL_CAUSES_H

#include "model/activity.h"

enum cause_kind {
	CAUSE_RUN, /* it ran on a CPU: no wait took as long */
	CAUSE_GIL,
	CAUSE_LOCK, /* another thread held it */
	CAUSE_DISK,
	CAUSE_MEMORY, /* had to free some */
	CAUSE_QUOTA, /* runnable, but throttled by its cgroup's quota */
	CAUSE_CPU, /* runnable while other threads used the CPUs */
	CAUSE_NETWORK, /* connecting, sending */
	CAUSE_LIBRARY, /* CUDA, NCCL, .. */
	CAUSE_CALL, /* another system call that does work */
	CAUSE_BLOCKED, /* uninterruptible in no recorded call */
	CAUSE_SLEEP, /* asked for */
	CAUSE_PEER, /* for data of another thread or machine: a pipe, a socket */
	CAUSE_FUTEX, /* a lock or a condition: family lock distinguishes them */
	CAUSE_IDLE, /* for something to do: poll, accept, a condition, a child */
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

/* causes_kinds.c: of ACTIVITY_TRANSFER the file decides in the end */
enum cause_kind cause__kind_of(enum activity_cause cause);
/* "lock", for machines */
const char *cause__key(enum cause_kind kind);
/* 0: costs time, 1: sleeps and waits for peers, 2: idle; after them those that took little time */
u32 cause__tier(enum cause_kind kind);
#define CAUSE_TIER_LITTLE 3

/* A kind of cause in one process */
struct cause {
	u32 pid, threads; /* that it held up */
	enum cause_kind kind;
	u32 tier; /* the lower, the more it explains */
	u64 ns, wall_ns, times; /* summed over these threads: time of this kind, all their time, waits of this kind */
	const char *what; /* name of the wait that took most of ns, NULL: none */
	u64 what_ns, what_times; /* that wait's, over the same threads */
	const char *file; /* of a transfer, NULL: not known */
};

/* The i-th by rank, beginning with the cause that explains most; NULL: there are fewer */
const struct cause *causes__ranked(const struct causes *c, u32 i);
/* Is the thread one of those that the cause's figures were summed over? */
bool causes__counts(const struct causes *c, const struct cause *cause, u32 tid);

/* causes_files.c: the file that each process's transfers of each call spent most time on */
struct cause_files;
int cause_files__new(struct cause_files **out, const struct query *args);
void cause_files__free(struct cause_files *f);
/* Of a wait that is not for a disk: for a peer or for events; *name NULL: not known. */
enum cause_kind cause_files__find(const struct cause_files *f, u32 pid, const char *call, const char **name);

#endif
