/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits for the GIL, counted: for report gil and for the summary. */
#ifndef SONDE_REPORT_GIL_H
#define SONDE_REPORT_GIL_H

#include "model/stats.h"
#include "report/report.h"

struct gil_key {
	u64 gil; /* address of the GIL's condition: unique within its process */
	u32 pid;
	u32 unused;
};

struct gil_thread_key {
	struct gil_key gil;
	u32 tid;
	u32 unused;
};

struct gil_blame_key {
	struct gil_key gil;
	u32 tid; /* that waited */
	u32 dropper; /* whose drop ended the wait; 0: not seen, or it timed out */
	u32 holder; /* who held the GIL then; 0: not known, or a drop ended it */
	u32 unused;
};

struct gil_waits {
	struct stats time;
	u64 by_signal, by_timeout;
};

struct gil_interpreter {
	struct gil_waits waits;
	u32 threads; /* that waited */
	u64 inside; /* ns of the waits that lie in the time asked for */
	u64 first, last; /* CLOCK_MONOTONIC ns */
};

struct gil_report {
	struct map interpreters; /* struct gil_key -> struct gil_interpreter */
	struct map threads; /* struct gil_thread_key -> struct gil_waits */
	struct map blame; /* struct gil_blame_key -> struct gil_waits */
	struct stats_pool pool;
	const struct names *names;
	const struct report_args *args;
};

/* 0 or negative errno; gil_report__free in any case. */
int gil_report__read(struct gil_report *g, const struct report_args *args);
void gil_report__free(struct gil_report *g);
/* Says in words what the worst interpreters (max of them) cost. duration is the report's time in ns. */
void gil_report__find(const struct gil_report *g, struct report_output *out, u64 duration, u32 max);

#endif
