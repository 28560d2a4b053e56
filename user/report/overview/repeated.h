/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Findings of other reports that the summary repeats. */
#pragma once

#include "report/report.h"

/* Adds the first two findings of reports with .summary, if these have rows. 0 or negative errno. */
int repeated__add_findings(const struct query *args, struct report_output *out);
