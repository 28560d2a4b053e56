// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/report.h"

#include "model/facts.h"

#include <stdlib.h>
#include <string.h>

/* made by the linker; weak: a program without a report links too */
extern const struct report *const __start_sonde_reports[] __attribute__((weak));
extern const struct report *const __stop_sonde_reports[] __attribute__((weak));

int report__read(const struct report_args *args, const struct schema_event *const *kinds,
		 int (*cb)(const struct rows *rows, void *arg), void *arg)
{
	struct trace_filter filter = {
		.kinds = kinds,
		.from = args->from,
		.to = args->to,
		.pids = args->pids,
		.tids = args->tids,
	};

	return trace__read(args->trace, &filter, cb, arg);
}

int report__read_kind(const struct report_args *args, const char *kind, int (*cb)(const struct rows *rows, void *arg),
		      void *arg)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(args->trace), kind), NULL };

	return kinds[0] ? report__read(args, kinds, cb, arg) : 0;
}

u64 report__inside(const struct report_args *args, u64 from, u64 to)
{
	const struct trace_facts *f = args->facts;

	if (from < args->from)
		from = args->from;
	if (args->to && to > args->to)
		to = args->to;
	if (f && f->n_windows > 1 && to > from)
		return trace_facts__inside(f, from, to);
	return to > from ? to - from : 0;
}

/* Is it one of the words of a comma-separated list? */
static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL) {
		if (!strncmp(list, word, len) && (!list[len] || list[len] == ','))
			return true;
	}
	return false;
}

bool report__has_family(const struct report_args *args, const char *family)
{
	const char *asked = trace__head(args->trace)->families;

	return !asked || !*asked || in_list(asked, family);
}

void report__nothing(const struct report_args *args, struct report_output *out, const char *what, const char *family)
{
	bool timed = args->facts && (args->facts->from || args->facts->to);

	report_output__finding(out, "%s%s%s.", what, timed ? " in this time" : "",
			       args->tids.n	? " of this thread" :
			       args->pids.n > 1 ? " of these processes" :
			       args->pids.n	? " of this process" :
						  "");
	if (!report__has_family(args, family))
		report_output__finding(out, "The trace was made without family %s: `sonde record -t +%s` adds it.",
				       family, family);
}

struct trace_window report__window(const struct report_args *args)
{
	const struct trace_summary *s = trace__summary(args->trace);
	struct trace_window w = {
		/* calls that were running when tracing began reach back further */
		.from = args->from > args->start ? args->from : args->start,
		.to = args->to && args->to < s->last ? args->to : s->last,
	};

	w.to = w.to > w.from ? w.to : w.from;
	return w;
}

u64 report__duration(const struct report_args *args)
{
	struct trace_window w = report__window(args);

	return report__inside(args, w.from, w.to);
}

bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e)
{
	const struct schema_family *f = schema__family_by_id(schema, (u8)EVENT_FAMILY(e->id));

	return r->kinds && (in_list(r->kinds, e->name) || (f && f->id && in_list(r->kinds, f->name)));
}

const struct report *report__find(const char *name)
{
	const struct report *const *r;

	for (r = __start_sonde_reports; r < __stop_sonde_reports; r++) {
		if (!strcmp((*r)->name, name))
			return *r;
	}
	return NULL;
}

/* Visits in order of name without sorting: there are few. */
void report__each(void (*fn)(const struct report *r, void *arg), void *arg)
{
	const struct report *const *r, *next, *last = NULL;

	for (;; last = next) {
		next = NULL;
		for (r = __start_sonde_reports; r < __stop_sonde_reports; r++) {
			if (last && strcmp((*r)->name, last->name) <= 0)
				continue;
			if (!next || strcmp((*r)->name, next->name) < 0)
				next = *r;
		}
		if (!next)
			return;
		fn(next, arg);
	}
}
