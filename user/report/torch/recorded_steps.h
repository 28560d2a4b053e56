/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "model/torch_rests.h"
#include "report/report.h"

/* With --torch-budget the figures are those of some steps, or of some of the time: adds a line that says so. */
void recorded_steps__add(const struct torch_rests *rests, const struct query *q, struct report_output *out);
