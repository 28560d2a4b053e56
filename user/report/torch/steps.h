/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Findings about training steps, for the reports steps and summary. */
#pragma once

#include "model/torch_steps.h"
#include "report/report.h"

/*
 * Adds at most `max` findings about the loops with most time: what their time was, and why the longest step took
 * longer.
 */
void steps__add_findings(const struct torch_steps *s, const struct query *args, struct report_output *out, u32 max);
