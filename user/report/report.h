/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A report: one file here that fills a struct report and registers it. It
 * reads events and fills tables; printing (table, CSV, JSON), sorting and
 * cutting is done once, in table.c, for all of them.
 */
#ifndef SONDE_REPORT_H
#define SONDE_REPORT_H

#include "model/names.h"
#include "report/table.h"
#include "trace/reader.h"

struct report_args {
	struct trace *trace;
	u64 from, to; /* CLOCK_MONOTONIC ns, as in struct trace_filter */
	struct trace_ids pids, tids; /* n 0: all */
	u64 start; /* CLOCK_MONOTONIC ns that times are told from */
	struct names *names; /* loaded */
	const struct trace_facts *facts;
};

struct report {
	const char *name; /* "cuda-api" */
	const char *doc; /* one line for `sonde list reports` */
	const char *kinds; /* kinds of events or whole families that it is about, comma-separated; NULL: of none */
	/* Fills out; 0 or negative errno. A trace without such events is no error: tables stay empty, a finding says so. */
	int (*run)(const struct report_args *args, struct report_output *out);
};

/* Registered by address in a section of their own: a new report touches no list. */
#define REPORT(ident)                                                                                             \
	static const struct report ident;                                                                         \
	static const struct report *const ident##_entry __attribute__((used, section("sonde_reports"))) = &ident; \
	static const struct report ident

/* Reads the kinds (NULL-terminated) in the time and of the process and thread asked for. */
int report__read(const struct report_args *args, const struct schema_event *const *kinds,
		 int (*cb)(const struct rows *rows, void *arg), void *arg);
/* The same for one kind by name; 0 without a call of cb if the trace knows no such kind. */
int report__read_kind(const struct report_args *args, const char *kind, int (*cb)(const struct rows *rows, void *arg),
		      void *arg);
/* A moment as people read it: ns since the trace's start, negative before it. */
static inline struct value report__moment(const struct report_args *args, u64 time)
{
	return V_S64((s64)(time - args->start));
}
/* ns of [from, to) that lie in the time asked for */
u64 report__inside(const struct report_args *args, u64 from, u64 to);
/* Was the family recorded? Older traces do not say: true. */
bool report__has_family(const struct report_args *args, const char *family);
/* Finds that there is nothing: "No such thing" with what limited the search, and how to record it next time. */
void report__nothing(const struct report_args *args, struct report_output *out, const char *what, const char *family);
/* From when to when the report is about, CLOCK_MONOTONIC ns. */
struct trace_window report__window(const struct report_args *args);
/* ns of the trace that the report is about: without what lies between several traces */
u64 report__duration(const struct report_args *args);

const struct report *report__find(const char *name);
/* Is it about this kind of event? */
bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e);
/* Calls fn for each, by name. */
void report__each(void (*fn)(const struct report *r, void *arg), void *arg);

#endif
