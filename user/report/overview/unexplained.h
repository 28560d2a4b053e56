/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds options of `record` that would have explained more about processes with a runtime. */
#pragma once

#include "report/report.h"

/* The explained time of one such process. */
struct explained {
	u32 pid;
	u64 ns; /* the part explained by waits for the GIL or calls of libraries */
	u64 cpu_ns; /* of all its threads, if scheduling was recorded */
};

/*
 * Adds a finding on the process with the most unexplained time, if that is more than half of its time: without family
 * sched, time without any record; with it, running time without samples.
 */
void unexplained__add_findings(const struct query *args, const struct explained *processes, u32 n,
			       struct report_output *out);
