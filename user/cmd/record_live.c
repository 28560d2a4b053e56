// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Follows a recording's records while it runs, and writes what cost most time in the last second. */
#include <stdlib.h>
#include <string.h>

#include "cmd/record.h"
#include "findings/findings.h"
#include "model/live.h"
#include "output/text.h"

struct record_live {
	struct live *live;
	int error; /* of one of its functions: there are no findings from then on */
	u64 cut; /* time of the last live__cut, ns */
	u64 unmeasured_ns; /* session_status.unmeasured_ns at that time */
	struct finding finding;
	char text[512];
};

/* Of an interval that has less than this of a slice of time (record --cost-limit), ns, no wait is known. */
#define MEASURED_MIN 100000000

static void on_record(const struct schema *schema, const void *record, u32 size, void *arg)
{
	struct record_live *l = arg;

	if (!l->live && !l->error)
		l->error = live__new(&l->live, schema);
	if (!l->error)
		l->error = live__feed(l->live, record, size);
}

struct record_live *record_live__follow(struct session_args *a)
{
	/* --print follows the records itself */
	struct record_live *l = a->print ? NULL : calloc(1, sizeof(*l));

	if (l) {
		a->print = on_record;
		a->print_arg = l;
	}
	return l;
}

const char *record_live__finding(struct record_live *l, u64 now, u64 unmeasured_ns)
{
	u64 unmeasured = l ? unmeasured_ns - l->unmeasured_ns : 0;
	const struct query *interval;
	char *clean;

	if (!l || !l->live || l->error)
		return "";
	/* between two slices the last finding remains */
	if (unmeasured && now < l->cut + unmeasured + MEASURED_MIN)
		return l->text;
	l->cut = now;
	l->unmeasured_ns = unmeasured_ns;
	*l->text = '\0';
	l->error = live__cut(l->live, now, unmeasured, &interval);
	if (!l->error && interval)
		l->error = findings__first(&l->finding, interval);
	clean = text__clean(l->finding.text, strlen(l->finding.text));
	snprintf(l->text, sizeof(l->text), "%s", clean ? clean : "");
	free(clean);
	return l->text;
}

void record_live__free(struct record_live *l)
{
	if (!l)
		return;
	live__free(l->live);
	free(l);
}
