/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The selected part of a trace: a time, processes and threads; and facts about the trace as a whole. */
#pragma once

#include "model/facts.h"
#include "model/names.h"
#include "trace/reader.h"

struct findings;

struct query {
	struct trace *trace; /* NULL: events that are not in a trace; only functions that read none may be called */
	u64 from, to; /* CLOCK_MONOTONIC ns, as in struct trace_filter */
	struct trace_ids pids, tids; /* the selected ones; n 0: all */
	u64 start; /* CLOCK_MONOTONIC ns; moments are printed relative to it */
	struct names *names; /* loaded */
	const struct trace_facts *facts;
	const char *group_by; /* one of the report's groups; NULL: as usual */
	double peak_tflops; /* of the machine, as the user gave it; 0: not given */
	const char *subject; /* a process, thread or function, as the user named it; NULL: none */
	struct findings **findings; /* of this query, which several readers share (findings/findings.h); NULL: none do */
};

/*
 * Limits q, if it selects no time, to the time in which everything was attached, because records from attaching or
 * detaching are incomplete for every probe. Spans are cut at the edges of this time, or of the selected time if that
 * is longer. f must outlive q's trace.
 */
void query__limit(struct query *q, struct trace_facts *f);
/* Reads the kinds (NULL-terminated) of the selected time, processes and threads. Returns 0 or cb's other result. */
int query__read(const struct query *q, const struct schema_event *const *kinds,
		int (*cb)(const struct rows *rows, void *arg), void *arg);
/* As query__read for one kind by name; 0 without a call of cb if the trace lacks the kind. */
int query__read_kind(const struct query *q, const char *kind, int (*cb)(const struct rows *rows, void *arg), void *arg);
/* Returns the ns of [from, to) that lie in the selected time. */
u64 query__inside(const struct query *q, u64 from, u64 to);
/* Returns whether the family was recorded; true for older traces, which do not state this. */
bool query__has_family(const struct query *q, const char *family);
/* Returns the part of the selected time that the trace covers. */
struct trace_window query__window(const struct query *q);
/* Returns the ns of the trace in the selected time, without the time between merged recordings. */
u64 query__duration(const struct query *q);
/* Returns the part of it in which families sched and sample measured (record --cost-limit); never more. */
u64 query__measured(const struct query *q);
