/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The causes of model/causes.h as a table and as sentences: for report offcpu and the summary. */
#ifndef SONDE_REPORT_CAUSES_H
#define SONDE_REPORT_CAUSES_H

#include "model/causes.h"
#include "report/report.h"

/*
 * All intervals of activity are in: adds table `causes`, and as findings the first cause of the processes that were held
 * up longest, max of them. 0 or negative errno.
 */
int causes__report(struct causes *c, const struct activity *activity, const struct query *q, struct report_output *out,
		   u32 max);

/* causes_text.c: one sentence; reads the trace for details. 0 or negative errno. */
int cause__say(const struct causes *all, const struct query *args, const struct cause *cause, char *buf, size_t size);

#endif
