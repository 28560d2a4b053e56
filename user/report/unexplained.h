/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which flags would have shown more about processes with a runtime. */
#ifndef SONDE_REPORT_UNEXPLAINED_H
#define SONDE_REPORT_UNEXPLAINED_H

#include "report/report.h"

/* What is known of one such process */
struct explained {
	u32 pid;
	u64 ns; /* in which waits for the GIL or calls of libraries explain it */
	u64 cpu_ns; /* of all its threads, if scheduling was recorded */
};

/*
 * Adds a finding on the process of which most is not explained, if it is more than half of its time: without family sched
 * by nothing that was recorded, with it by no sample of what ran.
 */
void unexplained__add_findings(const struct query *args, const struct explained *processes, u32 n,
			       struct report_output *out);

#endif
