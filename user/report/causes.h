/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The causes of model/causes.h as a table and as sentences: for report offcpu and the summary. */
#ifndef SONDE_REPORT_CAUSES_H
#define SONDE_REPORT_CAUSES_H

#include "model/causes.h"
#include "report/report.h"

/*
 * Call after the last interval of activity was added. Adds table `causes`, and as findings the first cause of each
 * of the `max` processes that were held up longest. 0 or negative errno.
 */
int causes__report(struct causes *c, const struct activity *activity, const struct query *q, struct report_output *out,
		   u32 max);

/* causes_text.c: writes one sentence to buf and reads the trace for its details. 0 or negative errno. */
int cause__say(const struct causes *all, const struct query *args, const struct cause *cause, char *buf, size_t size);

#endif
