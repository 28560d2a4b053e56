/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time line of a page: what each thread did over time, and when each GPU was busy, as runs of cells. A run is the
 * time in which a thread was in one call or wait, or a cell in which it was in several, with the share of each kind. A
 * thread's cells become longer until all runs are at most so many, so the page's size has a bound that does not depend
 * on the trace's.
 */
#pragma once

#include <stdio.h>

#include "export/html_details.h"
#include "findings/findings.h"
#include "util/map.h"

/* Processes that come first at most */
#define TIMELINE_FIRST_MAX 32

struct timeline_run {
	u32 cell, n; /* of the line's cells */
	u32 what; /* number of struct what, or WHAT_MIXED */
	float shares[FINDING_COLOURS]; /* of the time of each cell, 1 at most in all */
};

/* A line is a thread's or a GPU's. Ids of threads may have any of 32 bits, so that none of them can mark a GPU. */
struct timeline_key {
	u32 pid, tid; /* tid: of a GPU its number */
	u32 is_gpu; /* 0 or 1 */
};

struct timeline_line {
	u64 width; /* of a cell, ns */
	struct timeline_run *runs; /* in order of time; they don't overlap */
	u32 n;
	u64 busy_ns; /* neither idle nor asleep */
	u64 known_ns; /* in a known state */
};

struct html_timeline {
	u64 from, to; /* ns */
	struct map lines; /* struct timeline_key -> struct timeline_line */
	struct timeline_key last; /* intervals arrive thread by thread: the line that it has */
	struct timeline_line *line;
	u32 runs; /* of all lines */
	u32 line_max; /* runs of a line at most */
	struct findings *findings; /* NULL: none were read */
	struct whats whats;
	u32 first[TIMELINE_FIRST_MAX]; /* pids: the processes that come before all others, as findings name them */
	u32 n_first;
};

/* Runs of all lines at most, and threads that are written; tests make them small. */
extern u32 timeline_runs_max, timeline_threads_max;

/* Reads q's time. 0 or negative errno; free it in any case. */
int html_timeline__read(struct html_timeline *t, const struct query *q);
void html_timeline__free(struct html_timeline *t);
/* For html_timeline__read, and for tests. from < to, ns */
void html_timeline__init(struct html_timeline *t, u64 from, u64 to);
int html_timeline__add(struct html_timeline *t, struct timeline_key key, u64 from, u64 to, enum finding_colour colour,
		       u32 what);
/*
 * Writes it as a JSON object: from, to (ns of the trace), the phrases of colours, names of calls with their colours,
 * and threads by process, those that were busy longest first; a GPU is a thread with number -1 of the process that used
 * it. A run is three numbers: the cells since the end of the previous run, its cells, and what it shows. A positive
 * third number is that of a name. A negative one contains the shares of a mixed cell in sevenths, three bits for each
 * enum finding_colour. A name is followed, if they are known, by the number of its stack from 1, the thread that ended
 * the wait or held the lock, and the number of that thread's stack. 0 or -ENOMEM.
 */
int html_timeline__write(const struct html_timeline *t, const struct query *q, FILE *out);
