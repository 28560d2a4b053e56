// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/query.h"

#include "output/text.h"

void query__limit(struct query *q, struct trace_facts *f)
{
	if (!q->from && f->live > q->start)
		q->from = f->live;
	if (!q->to && f->stop < f->summary->last)
		q->to = f->stop;
	/* a selected time must not begin or end with a pause */
	if (f->begins_paused && q->from < f->live)
		q->from = f->live;
	if (f->ends_paused && q->to > f->stop)
		q->to = f->stop;
	trace_facts__widen(f, q->from, q->to);
	trace__set_windows(q->trace, f->windows, f->n_windows);
}

int query__read(const struct query *args, const struct schema_event *const *kinds,
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

int query__read_kind(const struct query *args, const char *kind, int (*cb)(const struct rows *rows, void *arg),
		     void *arg)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(args->trace), kind), NULL };

	return kinds[0] ? query__read(args, kinds, cb, arg) : 0;
}

u64 query__inside(const struct query *args, u64 from, u64 to)
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

bool query__has_family(const struct query *args, const char *family)
{
	const char *recorded = trace__head(args->trace)->families;

	return !recorded || !*recorded || text__has_item(recorded, ',', family);
}

struct trace_window query__window(const struct query *args)
{
	const struct trace_summary *s = args->trace ? trace__summary(args->trace) : NULL;
	struct trace_window w = {
		/* not trace_summary.first: calls that were running when tracing began start before it */
		.from = args->from > args->start ? args->from : args->start,
		.to = !s || (args->to && args->to < s->last) ? args->to : s->last,
	};

	w.to = w.to > w.from ? w.to : w.from;
	return w;
}

u64 query__duration(const struct query *args)
{
	struct trace_window w = query__window(args);

	return query__inside(args, w.from, w.to);
}

u64 query__measured(const struct query *args)
{
	struct trace_window w = query__window(args);

	return query__duration(args) - (args->facts ? trace_facts__unmeasured(args->facts, w.from, w.to) : 0);
}
