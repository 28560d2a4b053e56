/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde top`: its figures (top_view.c), the command, which also prints lines (top.c), its screen (top_screen.c). */
#pragma once

#include "findings/finding.h"
#include "report/python/gil.h"
#include "util/recent.h"

/* A GIL: an interpreter of a process, or all of its interpreters before 3.12. */
struct top_gil {
	u32 pid;
	u32 number; /* in its process, from 0, in the order of appearance */
	char name[16]; /* of the process */
	double load_percent; /* percentage of the interval in which at least one thread waited */
	u64 waits, wait_ns; /* timed waits, of a switch interval at most; estimated while only slices are measured */
	u32 threads; /* number of threads that waited */
	u32 deepest; /* most threads that waited at once; 0: not known */
};

struct top_function {
	char name[STACK_LABEL];
	double self_percent, total_percent; /* of the CPU time of all samples in the interval */
	u64 self_ns, total_ns;
};

/* The figures of the last interval; lists are sorted, the largest first. */
struct top_view {
	u64 from, to; /* CLOCK_MONOTONIC ns */
	bool sliced; /* the GIL was measured for part of the time */
	struct finding finding; /* the first one; its text is empty if there was none */
	struct top_gil *gils;
	struct gil_blamed *pairs;
	struct top_function *functions;
	u32 n_gils, n_pairs, n_functions;
	struct recent numbers; /* struct gil_key -> u32: the number of the GIL plus 1; with gil 0 the number of GILs */
};

enum top_sort { TOP_SELF, TOP_TOTAL, TOP_SORTS };

void top_view__init(struct top_view *v);
void top_view__free(struct top_view *v);
/* Replaces the figures by those of the selected time. 0 or negative errno. */
int top_view__read(struct top_view *v, const struct query *q);
/* Sorts the functions. */
void top_view__sort(struct top_view *v, enum top_sort sort);

struct top_status {
	u64 lost; /* records, so far */
	double targets_percent, own_percent; /* of one CPU: what tracing costs, so far */
	bool sampling;
	bool has_figures; /* false: the first interval has not ended */
	const char *message; /* the last warning, "" if there was none */
};

/* The action of a key. */
enum top_key { TOP_NOTHING, TOP_QUIT, TOP_REDRAW };

/* Reads the terminal's description before the session starts, after which no file may be opened. */
void top_screen__prepare(void);
/* Takes over the terminal; returns false if it cannot. top_screen__close restores the terminal in any case. */
bool top_screen__open(void);
void top_screen__close(void);
/* Draws a view in the selected sort order. */
void top_screen__draw(struct top_view *v, const struct top_status *status);
/* Reads a typed key. */
enum top_key top_screen__key(void);
bool top_screen__paused(void);
