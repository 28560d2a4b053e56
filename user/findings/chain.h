/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains the time of a subject level by level. A level divides times of threads by kinds of wait, and finds the
 * thread that is responsible for the largest part. The next level divides the time of this thread during those waits.
 */
#pragma once

#include "findings/subject.h"

#define CHAIN_LEVELS_MAX 16

/* Why a chain ends at a level */
enum chain_end {
	CHAIN_GOES_ON,
	CHAIN_CAUSE, /* no other thread is responsible: it computed, slept or waited for a disk */
	CHAIN_IDLE, /* it waited for something to do */
	CHAIN_CPU, /* other threads had the CPUs */
	CHAIN_UNKNOWN, /* the thread that made it wait is not known */
	CHAIN_OUTSIDE, /* another machine, or a process that the trace does not have */
	CHAIN_CYCLE, /* the thread that made it wait is at an earlier level */
	CHAIN_DEEP, /* there are CHAIN_LEVELS_MAX levels */
	CHAIN_UNRECORDED, /* what that thread did was not recorded */
	CHAIN_NO_TIME, /* nothing is known of this time */
};

struct chain_part {
	u64 ns, times;
};

struct chain_level {
	struct thread_key thread; /* tid 0: several of one process; pid 0: of several processes */
	u32 threads;
	u64 ns; /* length of all times of the level */
	struct chain_part parts[FINDING_KINDS]; /* their sum is ns */
	enum finding_kind kind; /* of the part that is explained */
	struct finding_code code; /* the function that most of this part was spent in */
	u64 code_ns, code_times; /* of the part, in this function */
	char call[64]; /* of the longest wait in this function; "": none */
	char object[288]; /* what this call waited for; CHAIN_CPU: the names of the processes that ran */
	struct thread_key caused_by; /* the thread that made it wait; tid 0: several of one process; pid 0: not known */
	u64 caused_by_ns; /* the part of code_ns for which caused_by is responsible */
	bool is_forked; /* caused_by held the lock when it forked this process, which can't release it */
	struct finding_code caused_by_code; /* the code with which caused_by held the lock or ended the wait */
	double cpus_percent; /* CHAIN_CPU: their share of the time of all CPUs; caused_by is the first of them */
	enum chain_end end;
};

struct chain {
	struct subject subject;
	struct chain_level levels[CHAIN_LEVELS_MAX];
	u32 n;
	u64 left_out; /* ns of waits that were not followed, because there were too many */
};

/*
 * text: as in subject__find. f must be read; its activity is loaded anew. 0 or negative errno; call chain__free in
 * either case.
 */
int chain__read(struct chain *c, const struct findings *f, const char *text);
void chain__free(struct chain *c);

/* Returns the name in CSV and JSON: "cause". */
const char *chain_end__key(enum chain_end end);
