/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What certain threads did, moment by moment, in the terms of a GPU that waited for them: their activity, the files that
 * they read, and the samples of their stacks.
 */
#ifndef SONDE_MODEL_DOING_H
#define SONDE_MODEL_DOING_H

#include "model/activity.h"
#include "model/gpu_gaps.h"
#include "model/span_list.h"
#include "model/stacks.h"

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

/* What the model of activity does not have: the files of calls, which a later call may name, and samples of who ran. */
enum doing_source { DOING_CALLS, DOING_SAMPLES, DOING_SOURCES };

/* Of DOING_CALLS, in `what`; `of`: a text */
enum doing_call { DOING_READS = 1, DOING_WRITES, DOING_POLLS };

/* Of DOING_SAMPLES, in `what`; the span is the CPU time before it that it stands for, `of` the function, 0: not known */
enum doing_function { DOING_PYTHON = 1, DOING_LOADER = 2 };

struct doing_thread {
	struct span_list lists[DOING_SOURCES];
};

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
/* "decode (loader.py)"; 0: not known, or no memory. *what: enum doing_function */
u32 doing_sources__function(const struct doing_sources *s, u32 stack, u32 *what);

#endif
