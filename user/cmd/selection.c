// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/selection.h"

#include <errno.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "model/clock.h"
#include "util/array.h"

/* Warns about selected processes that the trace does not have, as far as it names its processes. */
static void warn_unknown(const struct selection_request *r, const struct query *q)
{
	for (u32 i = 0; i < r->pids->n && !r->may_lack && query__has_family(q, "proc"); i++)
		if (!names__task(q->names, r->pids->list[i], 0))
			cmd__error("%s: the trace names no process %u", r->label, r->pids->list[i]);
}

struct id_list {
	u32 *list;
	u32 n;
	int err;
};

static void add_id(u32 id, void *arg)
{
	struct id_list *ids = arg;

	if (!array__push(ids->list, ids->n, id))
		ids->err = -ENOMEM;
}

/*
 * Finds the processes and threads with the numbers of -p and --tid; several may have had the same number. Returns 0 or
 * -ENOMEM.
 */
static int find_ids(struct selection *s, const struct selection_request *r)
{
	struct id_list pids = {}, tids = {};

	for (u32 i = 0; i < r->pids->n; i++)
		names__each_id(s->query.names, r->pids->list[i], add_id, &pids);
	if (r->tid)
		names__each_id(s->query.names, r->tid, add_id, &tids);
	s->pids = pids.list;
	s->tids = tids.list;
	s->query.pids = (struct trace_ids){ pids.list, pids.n };
	s->query.tids = (struct trace_ids){ tids.list, tids.n };
	return pids.err ? pids.err : tids.err;
}

/* Excludes the time before all probes were attached, and after detaching began. */
static void select_traced(struct selection *s)
{
	struct query *q = &s->query;

	q->from = q->from && q->from < s->facts.live ? s->facts.live : q->from;
	q->to = q->to > s->facts.stop ? s->facts.stop : q->to;
}

int selection__load(struct selection *s, struct trace *t, const struct selection_request *r)
{
	struct query *q = &s->query;
	char why[512];
	int err;

	*s = (struct selection){ .query = { .trace = t, .facts = &s->facts } };
	q->start = trace__head(t)->monotonic ? trace__head(t)->monotonic : trace__summary(t)->first;
	if (r->time && clock__parse_range(r->time, q->start, trace__head(t), &q->from, &q->to, why, sizeof(why)))
		return cmd__usage(r->command, "%s", why);
	err = trace_facts__load(&s->facts, t, r->label, q->from, q->to);
	s->facts.path = r->path;
	s->facts.pids = (struct trace_ids){ r->pids->list, r->pids->n };
	s->facts.tid = r->tid;
	if (!err) {
		if (r->only_traced)
			select_traced(s);
		query__limit(q, &s->facts);
		err = names__create(&q->names, trace__schema(t));
	}
	if (!err)
		err = names__load(q->names, t);
	if (!err)
		err = find_ids(s, r);
	if (err) {
		cmd__error("%s: cannot read it: %s", r->label, cmd__reason(err));
		return EXIT_FAILED;
	}
	warn_unknown(r, q);
	if (!r->only_traced || query__duration(q))
		return EXIT_DONE;
	cmd__error("%s: none of this time was traced: the trace has %.3f to %.3f s", r->label,
		   (double)(s->facts.live - s->facts.start) / 1e9, (double)(s->facts.stop - s->facts.start) / 1e9);
	return EXIT_FAILED;
}

void selection__free(struct selection *s)
{
	free(s->pids);
	free(s->tids);
	names__free(s->query.names);
	trace_facts__free(&s->facts);
}
