/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A report is one file in this folder that fills a struct report and registers it. It reads events and fills
 * tables; print.c and json.c do the printing, sorting and cutting for all of them.
 */
#ifndef SONDE_REPORT_H
#define SONDE_REPORT_H

#include "model/query.h"
#include "output/table.h"

struct report {
	const char *name; /* "cuda-api" */
	const char *doc; /* one line for `sonde list reports` */
	const char
		*kinds; /* the event kinds or whole families that it reads, comma-separated; NULL: none in particular */
	/* Fills out; 0 or negative errno. A trace without such events is no error: tables stay empty, a finding says so. */
	int (*run)(const struct query *args, struct report_output *out);
	/*
	 * Other than 0: the summary repeats the first two findings of the report if its tables have rows. The findings of
	 * the report with the lowest number come first.
	 */
	u32 summary;
	bool reads_sources; /* opens files that the trace names (report/source.h) */
};

/* Registered by address in a section of their own: a new report touches no list. */
#define REPORT(ident)                                                                                             \
	static const struct report ident;                                                                         \
	static const struct report *const ident##_entry __attribute__((used, section("sonde_reports"))) = &ident; \
	static const struct report ident

/* A time for output: ns since the trace's start, negative before it. */
static inline struct value report__moment(const struct query *args, u64 time)
{
	return V_S64((s64)(time - args->start));
}
/* Adds a finding that there is nothing: "No such thing", the filters that applied, and how to record it. */
void report__nothing(const struct query *args, struct report_output *out, const char *what, const char *family);
const struct report *report__find(const char *name);
/* Does the report read this kind of event? */
bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e);
/* Calls fn for each, by name. */
void report__each(void (*fn)(const struct report *r, void *arg), void *arg);

#endif
