/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The selected part of a trace: a time, processes and threads; and facts about the trace as a whole. */
#ifndef SONDE_MODEL_QUERY_H
#define SONDE_MODEL_QUERY_H

#include "model/facts.h"
#include "model/names.h"
#include "trace/reader.h"

struct query {
	struct trace *trace;
	u64 from, to; /* CLOCK_MONOTONIC ns, as in struct trace_filter */
	struct trace_ids pids, tids; /* of these alone; n 0: all */
	u64 start; /* CLOCK_MONOTONIC ns; moments are printed relative to it */
	struct names *names; /* loaded */
	const struct trace_facts *facts;
};

/* Reads the kinds (NULL-terminated) in the time and of the selected processes and threads. 0, or cb's other result. */
int query__read(const struct query *q, const struct schema_event *const *kinds,
		int (*cb)(const struct rows *rows, void *arg), void *arg);
/* The same for one kind by name; 0 without a call of cb if the trace knows no such kind. */
int query__read_kind(const struct query *q, const char *kind, int (*cb)(const struct rows *rows, void *arg), void *arg);
/* ns of [from, to) that lie in the selected time */
u64 query__inside(const struct query *q, u64 from, u64 to);
/* Was the family recorded? Older traces do not record this: true. */
bool query__has_family(const struct query *q, const char *family);
/* The length of the selected time that the trace covers, ns. */
struct trace_window query__window(const struct query *q);
/* ns of the trace that lie in the selected time: without what lies between several traces */
u64 query__duration(const struct query *q);

#endif
