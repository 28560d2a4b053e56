// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/report.h"

#include <string.h>

#include "output/text.h"

/* made by the linker; weak: a program without a report links too */
extern const struct report *const __start_sonde_reports[] __attribute__((weak));
extern const struct report *const __stop_sonde_reports[] __attribute__((weak));

void report__nothing(const struct query *args, struct report_output *out, const char *what, const char *family)
{
	bool timed = args->facts && (args->facts->from || args->facts->to);

	report_output__finding(out, "%s%s%s.", what, timed ? " in this time" : "",
			       args->tids.n	? " of this thread" :
			       args->pids.n > 1 ? " of these processes" :
			       args->pids.n	? " of this process" :
						  "");
	if (!query__has_family(args, family))
		report_output__finding(out, "The trace was made without family %s: `sonde record -t +%s` adds it.",
				       family, family);
}

bool report__is_about(const struct report *r, const struct schema *schema, const struct schema_event *e)
{
	const struct schema_family *f = schema__family_by_id(schema, (u8)EVENT_FAMILY(e->id));

	return r->kinds &&
	       (text__has_item(r->kinds, ',', e->name) || (f && f->id && text__has_item(r->kinds, ',', f->name)));
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
