/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A report is one file in a folder below this one, which fills a struct report and registers it. It reads events and
 * fills tables; user/output prints and sorts them.
 */
#pragma once

#include "model/query.h"
#include "output/table.h"
#include "util/registry.h"

/* Which time of threads a report is about */
enum nvtx_parts {
	NVTX_PARTS_NONE,
	NVTX_PARTS_GIL,
	NVTX_PARTS_OFF_CPU,
	NVTX_PARTS_LOCK,
	NVTX_PARTS_CUDA,
	NVTX_PARTS_NCCL,
	NVTX_PARTS_SYSCALL,
	NVTX_PARTS_PYTHON, /* samples by function */
	NVTX_PARTS_KERNEL, /* as report nvtx-kern */
};

struct report {
	const char *name; /* "cuda-api" */
	const char *doc; /* one line for `sonde list reports` */
	const char *kinds; /* comma-separated kinds or families that it reads; NULL: none in particular */
	/* Fills out; returns 0 or negative errno. Without events, tables stay empty and a finding states it. */
	int (*run)(const struct query *args, struct report_output *out);
	/* If not 0, the summary repeats the first two findings if the tables have rows; lower numbers come first. */
	u32 summary;
	const char *groups; /* what --group-by takes, comma-separated; NULL: nothing */
	enum nvtx_parts nvtx; /* --group-by nvtx: what it sums by the innermost range of NVTX */
	bool takes_peak; /* query.peak_tflops */
	bool takes_subject; /* `sonde report FILE NAME SUBJECT`: query.subject */
	bool reads_sources; /* opens files that the trace names (report/source.h) */
};

#define REPORT(ident) REGISTER(report, sonde_reports, ident)

/* Returns a time for output: ns since the trace's start, negative before it. */
static inline struct value report__moment(const struct query *args, u64 time)
{
	return V_S64((s64)(time - args->start));
}
/* Adds the finding "No such thing", with the filters that applied and how to record it. */
void report__nothing(const struct query *args, struct report_output *out, const char *what, const char *family);
/* Runs the report, then replaces ids of reused pids and tids. Returns 0 or negative errno; free out in any case. */
int report__run(const struct report *r, const struct query *q, struct report_output *out);
const struct report *report__find(const char *name);
/* Does the report read this kind of event? */
bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e);
/* Calls fn for each report, sorted by name. */
void report__each(void (*fn)(const struct report *r, void *arg), void *arg);
