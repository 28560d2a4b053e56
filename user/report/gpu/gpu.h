/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Determines how busy devices were and why they were idle, for report gpu and the summary. */
#pragma once

#include "model/gpu_gaps.h"
#include "report/report.h"

struct gpu_report {
	struct gpu_busy busy;
	struct gpu_gaps gaps;
};

/* Reads the trace; details the max longest gaps. Returns 0 or negative errno; call gpu_report__free in any case. */
int gpu_report__read(struct gpu_report *r, const struct query *args, u32 max);
void gpu_report__free(struct gpu_report *r);
/* gpu_limits.c: adds a finding for each process that has no device records, with the reason. 0 or negative errno */
int gpu_report__add_host_findings(const struct gpu_report *r, struct report_output *out);
/* gpu_metrics.c: adds what NVML reported: findings, metrics, limits of clocks, processes. 0 or negative errno */
int gpu_report__add_metrics(const struct query *args, struct report_output *out);
/* Adds notes on the limits of these figures. */
void gpu_report__add_notes(const struct gpu_report *r, struct report_output *out);
