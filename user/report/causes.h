/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shows the causes of model/causes.h as a table, for report offcpu and the summary. */
#pragma once

#include "model/causes.h"
#include "report/report.h"

/* Adds table `causes`, after the last interval of activity was added. Returns 0 or negative errno. */
int causes__report(struct causes *c, const struct activity *activity, const struct query *q, struct report_output *out);
