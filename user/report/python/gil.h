/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts waits for the GIL, for report gil and the summary. */
#pragma once

#include "model/gil.h"
#include "model/stacks.h"
#include "model/stats.h"
#include "model/stops.h"
#include "report/report.h"

struct gil_thread_key {
	struct gil_key gil;
	u32 tid;
	u32 unused;
};

/* Recorded waits and, if only slices of time were measured, an estimate of the others. */
struct gil_waits {
	struct stats time; /* timed waits */
	u64 by_signal, by_timeout;
	u64 attempts; /* to get the GIL, recorded */
	double more_waits, more_ns, more_attempts;
};

/* These include the estimate. */
u64 gil_waits__count(const struct gil_waits *w);
u64 gil_waits__ns(const struct gil_waits *w);

struct gil_interpreter {
	struct gil_waits waits;
	u32 threads; /* that waited */
	u32 deepest; /* most threads that waited at once, 0: not known */
	double inside; /* ns of the waits within the selected time */
	double busy; /* ns in which at least one thread waited */
};

struct gil_thread {
	struct gil_waits waits;
	u64 attempt; /* the last attempt that was attributed to a holder, and that holder's index */
	u32 blamed;
	u64 switches; /* forced switches that it awaited in drop_gil, with --gil=full */
	double switch_ns;
};

/* Samples (-F) of threads that may have held a GIL, and the C functions in which holders were (gil_native.c). */
struct gil_natives {
	struct gil_sample *samples; /* by thread and time */
	u32 n;
	bool sampled; /* the trace has any samples in the selected time */
	u64 left_out; /* samples dropped for lack of room */
	struct map names; /* struct gil_native_name -> u32: its index plus one */
	struct map places; /* u32 stack -> struct place, while samples are read */
	struct map counts; /* struct gil_native_key -> double: samples, weighted */
	struct map sums; /* u32 side -> struct gil_native_sum */
};

/* Which code caused the waits: see gil_blame.c */
struct gil_blame {
	struct stacks *stacks;
	struct map sides; /* struct gil_side -> struct gil_side_sum: holders and waiters by function */
	struct map pairs; /* struct gil_pair_key -> struct gil_pair: by function */
	struct map by_stack; /* struct gil_stacks_key -> struct gil_pair: by whole stacks */
	struct map holds; /* struct gil_hold_key -> struct gil_hold_sum, with --gil=full */
	struct gil_natives natives;
	double ns, free_ns, unknown_ns; /* ns of all waits; with no holder; with an unknown holder */
	double estimated_ns; /* attributed by the stacks of other short waits or holds */
	double left_out; /* ns of pairs for which there was no room */
};

struct gil_report {
	struct map interpreters; /* struct gil_key -> struct gil_interpreter */
	struct map threads; /* struct gil_thread_key -> struct gil_thread */
	struct gil_blame blame;
	struct stops stops; /* left out of all sums */
	u64 paused; /* time that was not measured, ns */
	struct stats_pool pool;
	const struct names *names;
	const struct query *args;
};

/* Returns 0 or negative errno; call gil_report__free in any case. */
int gil_report__read(struct gil_report *g, const struct query *args);
void gil_report__free(struct gil_report *g);
/* Did threads wait for a GIL for more than 10% of the report's duration (ns)? */
bool gil_report__matters(const struct gil_report *g, u64 duration);
/* The number of its interpreter, in a process that has several GILs */
struct value gil_report__interpreter(const struct gil_report *g, const struct gil_key *gil);
#define GIL_LABEL 96
/* Writes "train.py 4711", or "train.py 4711, interpreter 1" of a process that has several GILs. Returns buf. */
char *gil_report__label(const struct gil_report *g, const struct gil_key *gil, char buf[GIL_LABEL]);
/* Adds findings on the at most max interpreters with the longest waits. duration is the report's, ns. */
void gil_report__add_findings(const struct gil_report *g, struct report_output *out, u64 duration, u32 max);

/* gil_blame.c: attributes waits to functions. */
int gil_blame__init(struct gil_blame *b, const struct query *args);
void gil_blame__free(struct gil_blame *b);
/* ns: the part of the segment's time that counts. */
int gil_blame__add(struct gil_report *g, const struct gil_segment *p, double ns);
/* One of the pairs of functions, by index from 0 on */
struct gil_blamed {
	u32 pid;
	char holder[STACK_LABEL], waiter[STACK_LABEL]; /* functions, without lines */
	u64 waits, wait_ns;
	double share_percent; /* of all waiting */
};
/* Returns false if there are fewer. */
bool gil_blame__pair(const struct gil_report *g, u32 i, struct gil_blamed *out);
void gil_blame__tables(const struct gil_report *g, struct report_output *out);
/* Adds the findings on which code caused the waiting. */
void gil_blame__add_findings(const struct gil_report *g, struct report_output *out);

/* gil_holds.c: sums how long each function held the GIL. */
void gil_holds__init(struct gil_blame *b);
int gil_blame__held(struct gil_report *g, const struct gil_held *h, u64 ns);
/* Adds table `holds` if it has rows. */
void gil_holds__table(const struct gil_report *g, struct report_output *out);

/* gil_native.c: finds the C functions of holders. Call it once the stacks are loaded. */
int gil_natives__init(struct gil_blame *b, const struct query *args);
void gil_natives__free(struct gil_natives *n);
/* side: the holder's index in struct gil_blame.sides; function: the holder's, 0 for a thread */
int gil_natives__add(struct gil_natives *n, u32 side, u32 function, const struct gil_segment *p);

struct gil_native_share {
	double percent; /* of the samples' time */
	u32 samples; /* samples of the holder while other threads waited for it */
	bool mostly; /* the samples prove that it is more than half of the time */
};

/*
 * Returns the C function in which the holder spent most time, "deflate (libz.so.1)"; NULL: Python code, or not known.
 */
const char *gil_natives__main_function(const struct gil_natives *n, u32 side, struct gil_native_share *share);
/* Adds notes on the limits of these figures */
void gil_natives__add_notes(const struct gil_natives *n, struct report_output *out);
