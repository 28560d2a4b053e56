/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What certain threads did, moment by moment, of all that was recorded of them: the scheduler's spans, what they were in
 * the middle of (model/waits.h), who had the GIL, which files they read, and the samples of their stacks.
 */
#ifndef SONDE_MODEL_DOING_H
#define SONDE_MODEL_DOING_H

#include "model/stacks.h"
#include "model/gpu_gaps.h"

struct doing;

/* 0 or negative errno; free in any case. */
int doing__new(struct doing **out, const struct query *args, struct gpu_gaps *gaps);
void doing__free(struct doing *d);
/* Before loading: a thread that will be asked for. 0 or -ENOMEM. */
int doing__add_thread(struct doing *d, u32 pid, u32 tid);
/* Reads what these threads did in [from, to) and forgets what it had. 0 or negative errno. */
int doing__load(struct doing *d, u64 from, u64 to);

/* What is known from elsewhere about the time asked for. */
struct doing_hint {
	u64 from, to; /* samples of this time name functions */
	u32 stack; /* Python's a little later, 0: not known */
	const char *call; /* the call that it was in, for lack of better; NULL: none */
};

/*
 * Cuts [from, to), which lies in what was loaded, into parts and calls fn for each; they sum to it. 0, or fn's first
 * other result.
 */
int doing__explain(struct doing *d, u32 pid, u32 tid, u64 from, u64 to, const struct doing_hint *hint,
		   int (*fn)(enum gap_cause cause, u32 of, u64 ns, void *arg), void *arg);

/* doing_lists.c: the spans of one thread and one source */
enum doing_source { DOING_SCHED, DOING_GIL, DOING_CALLS, DOING_SAMPLES, DOING_OFF, DOING_SOURCES };

/* Of DOING_SCHED */
enum doing_state { DOING_UNKNOWN, DOING_RUNS, DOING_WANTS, DOING_SLEEPS, DOING_BLOCKED };

/* Of DOING_CALLS */
enum doing_call { DOING_READS = 1, DOING_WRITES, DOING_POLLS };

struct doing_span {
	u64 from, to; /* of a sample: the CPU time before it that it stands for */
	u32 what; /* enum doing_state, doing_call; of stacks: is it Python's (1), in a data loader (2) */
	u32 of; /* a text, 0: none */
};

struct doing_list {
	struct doing_span *spans; /* by their start, and then mostly by their end */
	u32 n, allocated;
};

struct doing_thread {
	struct doing_list lists[DOING_SOURCES];
};

int doing_list__add(struct doing_list *l, const struct doing_span *span);
void doing_list__sort(struct doing_list *l);
/* The first that ends after `time`, n: none does */
u32 doing_list__find(const struct doing_list *l, u64 time);
/* The one at `time`, NULL: none; *until is brought forward to where that changes. */
const struct doing_span *doing_list__at(const struct doing_list *l, u64 time, u64 *until);

/* doing_read.c: fills the lists */
struct osrt_files;
struct doing_sources {
	const struct query *args; /* of the window */
	struct gpu_gaps *gaps; /* its texts */
	struct map threads; /* struct thread_key -> struct doing_thread */
	struct stacks *stacks;
	struct osrt_files *files;
};
int doing_sources__read(struct doing_sources *s);
struct doing_thread *doing_sources__thread(const struct doing_sources *s, u32 pid, u32 tid);
/* "decode (loader.py)"; 0: not known, or no memory. *what as in struct doing_span. */
u32 doing_sources__function(const struct doing_sources *s, u32 stack, u32 *what);

#endif
