/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by chain.c, which follows a chain, and chain_level.c, which explains one level. */
#pragma once

#include "findings/chain.h"

#define CHAIN_TIMES_MAX 300000u

struct chain_time {
	struct thread_key thread;
	u64 from, to; /* ns */
	u64 latest; /* of `to`, of this time and the thread's earlier ones: they overlap if several threads wait */
};

struct chain_times {
	struct chain_time *list; /* by thread, then by time, once sorted */
	u32 n;
};

/* A part of a level's time that at most one thread is responsible for */
struct chain_segment {
	struct thread_key caused_by; /* 0: none */
	u32 caused_by_stack, code; /* code: number of the function that waited, 0: not known */
	u64 from, to;
	u8 kind; /* enum finding_kind */
};

/* The waits of a level in one function */
struct chain_function {
	u64 ns, times;
	u64 longest; /* ns */
	u32 stack, reason; /* of the longest one */
	u64 object;
	struct thread_key thread, caused_by;
};

struct chain_function_key {
	u32 kind, code;
};

/* What is read for a level */
struct chain_reading {
	struct chain *chain;
	const struct findings *findings;
	const struct finding_input *in;
	struct subject *function; /* read only intervals and samples with this function on the stack; NULL: all */
	struct chain_level *level;
	struct map functions; /* struct chain_function_key -> struct chain_function */
	struct chain_segment *segments;
	u32 n_segments;
	u32 peer; /* the process at the other end of the connection; 0: not known */
	const struct activity_interval *interval; /* the interval that is being cut into segments */
	u32 interval_code;
	enum finding_kind interval_kind;
};

/* Sorts the times and reads their intervals. 0 or negative errno. */
int chain_reading__read(struct chain_reading *r, struct chain_times *times);
/* Finds the function with most samples in these times, for the running part. 0 or negative errno. */
int chain_reading__sample(struct chain_reading *r, const struct chain_times *times);
/* The processes that ran most while the level's threads were runnable. 0 or negative errno. */
int chain_reading__find_cpu_users(struct chain_reading *r);
void chain_reading__free(struct chain_reading *r);
