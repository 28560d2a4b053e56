/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains what threads did while a GPU waited for them: from their activity, the files that they read and the samples
 * of their stacks.
 */
#pragma once

#include "model/activity.h"
#include "model/gpu_gaps.h"
#include "model/span_list.h"
#include "model/stacks.h"

struct explainer;

/* 0 or negative errno; free in any case. */
int explainer__new(struct explainer **out, const struct query *args, struct gpu_gaps *gaps);
void explainer__free(struct explainer *d);
/* Call before loading, for each thread that will be explained. 0 or -ENOMEM. */
int explainer__add_thread(struct explainer *d, u32 pid, u32 tid);
/* Reads the activity of these threads in [from, to) and forgets what was loaded before. 0 or negative errno. */
int explainer__load(struct explainer *d, u64 from, u64 to);

/* Hints about the time to be explained. */
struct explainer_hint {
	u64 from, to; /* samples of this time may name functions */
	u32 stack; /* Python stack of the launch that ended the gap; 0: not known */
	const char *call; /* the call that the thread was in, used where nothing better is known; NULL: none */
};

/*
 * Cuts [from, to), which must be loaded, into parts that tile it, and calls fn for each. Returns 0 or fn's first other
 * result.
 */
int explainer__explain(struct explainer *d, u32 pid, u32 tid, u64 from, u64 to, const struct explainer_hint *hint,
		       int (*fn)(enum gap_cause cause, u32 object, u64 ns, void *arg), void *arg);

/* Spans that the activity model lacks: calls with their files, and samples of running threads */
enum explainer_source { EXPLAINER_CALLS, EXPLAINER_SAMPLES, EXPLAINER_SOURCES };

/* `kind` of EXPLAINER_CALLS; `detail` is the number of a text. */
enum explainer_call { EXPLAINER_READS = 1, EXPLAINER_WRITES, EXPLAINER_POLLS };

/* Flags in `kind` of EXPLAINER_SAMPLES; the span is the sample's CPU time, `detail` its function or 0. */
enum explainer_function { EXPLAINER_PYTHON = 1, EXPLAINER_LOADER = 2 };

struct explainer_thread {
	struct span_list lists[EXPLAINER_SOURCES];
};

/* explainer_read.c: fills the lists */
struct osrt_files;
struct explainer_sources {
	const struct query *args; /* of the window */
	struct gpu_gaps *gaps; /* its texts */
	struct map threads; /* struct thread_key -> struct explainer_thread */
	struct stacks *stacks;
	const struct osrt_files *files;
};
int explainer_sources__read(struct explainer_sources *s);
struct explainer_thread *explainer_sources__thread(const struct explainer_sources *s, u32 pid, u32 tid);
/* Returns the number of a text, "decode (loader.py)"; 0: not known, or no memory. *kind: enum explainer_function */
u32 explainer_sources__function(const struct explainer_sources *s, u32 stack, u32 *kind);
