/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long threads waited for other ranks in collective operations, in parts of the time. It is summed before cells
 * are classified, because a cell has only the sum of its waits.
 */
#pragma once

#include "model/activity.h"
#include "model/stacks.h"
#include "util/map.h"

/* So few that a part of a recording of some seconds has at least one step, and enough for a test of chance */
#define RANK_PARTS 16

struct rank_waits {
	u64 ns, parts[RANK_PARTS];
	u64 longest; /* ns */
	u32 stack; /* of the longest */
};

struct rank_time {
	const struct stacks *stacks;
	struct map functions; /* u32 stack_frame.code -> u8: library.rules has them as waits for other ranks */
	struct map marks; /* u32 stack -> u8, for rank_time.c */
	struct map processes; /* u32 pid -> u8: one of its threads has such a function in a stack */
	struct map threads; /* struct thread_key -> struct rank_waits: of threads with Python code */
	u64 from, width; /* of the first part; of each, ns */
};

/* 0 or -ENOMEM; rank_time__free in any case. stacks must outlive it. */
int rank_time__init(struct rank_time *t, const struct query *q, const struct stacks *stacks);
int rank_time__add(struct rank_time *t, const struct activity_interval *i);
/* Is the stack, on which a thread waited, in a collective operation? */
bool rank_time__has(const struct rank_time *t, u32 stack);
void rank_time__free(struct rank_time *t);
