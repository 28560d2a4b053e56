// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Maps causes of a thread's intervals to kinds of causes of a process. */
#include "model/causes.h"

static const struct kind {
	const char *key;
	u32 tier;
} kinds[CAUSE_KINDS] = {
	[CAUSE_RUN] = { "on-cpu", 0 },	  [CAUSE_GIL] = { "gil", 0 },	      [CAUSE_LOCK] = { "lock", 0 },
	[CAUSE_DISK] = { "disk", 0 },	  [CAUSE_MEMORY] = { "memory", 0 },   [CAUSE_QUOTA] = { "cpu-quota", 0 },
	[CAUSE_CPU] = { "cpu", 0 },	  [CAUSE_NETWORK] = { "network", 0 }, [CAUSE_LIBRARY] = { "library", 0 },
	[CAUSE_CALL] = { "syscall", 0 },  [CAUSE_BLOCKED] = { "blocked", 0 }, [CAUSE_SLEEP] = { "sleep", 1 },
	[CAUSE_PEER] = { "peer", 1 },	  [CAUSE_FUTEX] = { "futex", 1 },     [CAUSE_IDLE] = { "idle", 2 },
	[CAUSE_ASLEEP] = { "asleep", 2 },
};

const char *cause__key(enum cause_kind kind)
{
	return kinds[kind].key;
}

u32 cause__tier(enum cause_kind kind)
{
	return kinds[kind].tier;
}

/* ACTIVITY_QUOTA is CAUSE_CPU here: causes.c decides by a process's sums whether a quota throttled it. */
static const enum cause_kind of_causes[ACTIVITY_CAUSES] = {
	[ACTIVITY_QUOTA] = CAUSE_CPU,
	[ACTIVITY_ON_CPU] = CAUSE_RUN,
	[ACTIVITY_CPU] = CAUSE_CPU,
	[ACTIVITY_GIL] = CAUSE_GIL,
	[ACTIVITY_LOCK] = CAUSE_LOCK,
	[ACTIVITY_CONDITION] = CAUSE_IDLE,
	[ACTIVITY_CUDA] = CAUSE_LIBRARY,
	[ACTIVITY_CUDA_SYNC] = CAUSE_LIBRARY,
	[ACTIVITY_NCCL] = CAUSE_LIBRARY,
	[ACTIVITY_GC] = CAUSE_LIBRARY,
	[ACTIVITY_LIBRARY] = CAUSE_LIBRARY,
	[ACTIVITY_DISK] = CAUSE_DISK,
	[ACTIVITY_FAULT] = CAUSE_DISK,
	[ACTIVITY_RECLAIM] = CAUSE_MEMORY,
	[ACTIVITY_CONNECT] = CAUSE_NETWORK,
	[ACTIVITY_SLEEP] = CAUSE_SLEEP,
	[ACTIVITY_EVENTS] = CAUSE_IDLE,
	[ACTIVITY_FUTEX] = CAUSE_FUTEX,
	[ACTIVITY_SEND] = CAUSE_NETWORK,
	[ACTIVITY_RECEIVE] = CAUSE_PEER,
	[ACTIVITY_SYNC] = CAUSE_DISK,
	[ACTIVITY_TRANSFER] = CAUSE_CALL,
	[ACTIVITY_SYSCALL] = CAUSE_CALL,
	[ACTIVITY_ASLEEP] = CAUSE_ASLEEP,
	[ACTIVITY_UNINTERRUPTIBLE] = CAUSE_BLOCKED,
	[ACTIVITY_STOPPED] = CAUSE_ASLEEP,
};

enum cause_kind cause__kind_of(enum activity_cause cause)
{
	return of_causes[cause];
}
