/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of user/diff: what is compared. */
#pragma once

#include "diff/diff.h"
#include "diff/noise.h"
#include "findings/findings.h"
#include "model/stats.h"
#include "util/map.h"

/* The most entries; further ones are left out, which a note states. */
#define DIFF_ENTRIES_MAX 50000u

enum diff_section {
	DIFF_FUNCTIONS, /* CPU time by function */
	DIFF_CAUSES, /* time of threads by state and cause */
	DIFF_CALLS,
	DIFF_FINDINGS,
	DIFF_SECTIONS
};

/* Identifies an entry in both traces: numbers of texts (diff.texts), 0: none. */
struct diff_key {
	u32 section; /* enum diff_section */
	u32 process, thread; /* roles */
	u32 name; /* of the function or call */
	u32 kind; /* enum finding_kind, of causes and findings */
};

struct diff_measure {
	struct noise_sum ns;
	struct noise_sum calls; /* of calls: how many */
	struct stats times; /* of calls: durations */
	u64 samples; /* of functions */
	u32 rank; /* of findings: from 1, 0: it is no finding of this side */
};

/* A figure of both sides */
struct diff_figure {
	double side[DIFF_SIDES];
	double noise; /* half the width of the interval of the difference that chance explains */
	bool is_change;
};

struct diff_entry {
	struct diff_measure side[DIFF_SIDES];
	struct diff_figure rate; /* ns a second of wall time */
	struct diff_figure mean, count; /* of calls: duration in ns, calls a second */
	bool is_compared; /* both sides recorded such a thing */
	double score; /* of a change: ranks it, ns a second; negative: it became faster */
};

/* The role of a process; a role that only one side has is not compared. */
struct diff_process {
	double ns[DIFF_SIDES], run_ns[DIFF_SIDES]; /* of all its threads */
};

struct diff {
	const struct query *q[DIFF_SIDES];
	double seconds[DIFF_SIDES];
	double measured[DIFF_SIDES]; /* seconds in which the scheduler was recorded (record --cost-limit) */
	struct findings *findings[DIFF_SIDES];
	struct map texts; /* model/texts.h */
	struct map entries; /* struct diff_key -> struct diff_entry */
	struct stats_pool pool;
	struct map processes; /* u32 text of a role -> struct diff_process */
	double run_ns[DIFF_SIDES]; /* CPU time of all threads */
	u64 left_out; /* things that were not compared, because there are too many */
	double p; /* probability of each comparison, so that all of them together have NOISE_P */
	u32 compared[DIFF_SECTIONS];
};

/* NULL: no memory (and then *err is set), or there are too many. */
struct diff_measure *diff__measure(struct diff *d, const struct diff_key *key, u32 side, int *err);
/* The number of a text */
u32 diff__text(struct diff *d, const char *text, int *err);
/* "" for 0 */
const char *diff__text_of(const struct diff *d, u32 number);

/* The bin of a moment */
u32 diff__bin(const struct diff *d, u32 side, u64 time);

/* Each reads one side. 0 or negative errno. */
int diff_threads__read(struct diff *d, u32 side); /* causes, findings and functions */
int diff_calls__read(struct diff *d, u32 side);

/* diff_compare.c: fills the figures, and decides what is a change. */
void diff__compare(struct diff *d);
/* diff_output.c: sentences, tables and notes */
void diff__output(const struct diff *d, struct report_output *out);
/* diff_text.c: the sentence on a change. Returns buf. */
char *diff_text__change(const struct diff *d, const struct diff_key *key, const struct diff_entry *e, char *buf,
			size_t size);
