// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/overview/repeated.h"

#include <errno.h>

#define REPEATED_MAX 32

struct repeated {
	const struct report *list[REPEATED_MAX]; /* by .summary, then by name */
	u32 n;
};

static void add_repeated(const struct report *report, void *arg)
{
	struct repeated *r = arg;
	u32 i;

	if (!report->summary || r->n == REPEATED_MAX)
		return;
	for (i = r->n++; i && r->list[i - 1]->summary > report->summary; i--)
		r->list[i] = r->list[i - 1];
	r->list[i] = report;
}

static int repeat_findings(const struct query *args, const struct report *r, struct report_output *out)
{
	struct report_output own = { .name = r->name };
	bool any = false;
	int err = r->run(args, &own);

	for (const struct table *t = own.tables; t; t = t->next)
		any = any || t->n_rows;
	for (u32 i = 0; any && i < own.n_findings && i < 2; i++)
		report_output__take(out, &own.findings[i]);
	if (!err && report_output__failed(&own))
		err = -ENOMEM;
	report_output__free(&own);
	return err;
}

int repeated__add_findings(const struct query *args, struct report_output *out)
{
	struct repeated r = {};
	int err = 0;

	report__each(add_repeated, &r);
	for (u32 i = 0; !err && i < r.n; i++)
		err = repeat_findings(args, r.list[i], out);
	return err;
}
