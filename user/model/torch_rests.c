// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/torch_rests.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

static int on_rests(const struct rows *rows, void *arg)
{
	struct torch_rests *r = arg;

	ROWS_EACH(v, rows) {
		struct torch_rest_time rest = {
			.pid = (u32)view__get(&v, "pid"),
			.from = (u64)view__get(&v, "start"),
			.to = (u64)view__get(&v, "time"),
			.steps = (u64)view__get(&v, "steps"),
			.cost_ns = (u64)view__get(&v, "cost"),
		};

		if (rest.from <= rest.to && !array__push(r->list, r->n, rest))
			return -ENOMEM;
	}
	return 0;
}

static int on_steps(const struct rows *rows, void *arg)
{
	struct torch_rests *r = arg;

	ROWS_EACH(v, rows) {
		r->recorded_steps++;
		r->steps++;
	}
	return 0;
}

static int on_states(const struct rows *rows, void *arg)
{
	((struct torch_rests *)arg)->by_shim = true;
	return 0;
}

COMPARE_BY(by_time, struct torch_rest_time, ASCENDING(pid), ASCENDING(from), ASCENDING(to))

/*
 * Drops the records of begins, but for those of rests that have no other record, as the process was killed: they last
 * until its next record, or to the end.
 */
static void join_begins(struct torch_rests *r, const struct query *q)
{
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++) {
		struct torch_rest_time rest = r->list[i];
		const struct torch_rest_time *next = i + 1 < r->n && r->list[i + 1].pid == rest.pid ? &r->list[i + 1] :
												      NULL;

		if (rest.from == rest.to && next && next->from == rest.from)
			continue;
		if (rest.from == rest.to)
			rest.to = next ? next->from : query__window(q).to;
		r->list[n++] = rest;
		r->steps += rest.steps;
		r->cost_ns += rest.cost_ns;
		r->ns += query__inside(q, rest.from, rest.to);
	}
	r->n = n;
}

int torch_rests__read(struct torch_rests *r, const struct query *q)
{
	struct query all = { .trace = q->trace };
	int err;

	*r = (struct torch_rests){};
	err = query__read_kind(&all, "torch_shim", on_states, r)     ?:
		      query__read_kind(q, "torch_rest", on_rests, r) ?:
								       query__read_kind(q, "torch_step", on_steps, r);
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_time);
	join_begins(r, q);
	return err;
}

void torch_rests__free(struct torch_rests *r)
{
	free(r->list);
}

bool torch_rests__overlap(const struct torch_rests *r, u32 pid, u64 from, u64 to)
{
	u32 i = (u32)SEARCH(r->n, k, r->list[k].pid < pid || (r->list[k].pid == pid && r->list[k].to <= from));

	return i < r->n && r->list[i].pid == pid && r->list[i].from < to;
}

u64 torch_rests__sum(const struct torch_rests *r, const struct query *q, u32 pid)
{
	u64 sum = 0;

	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].pid == pid)
			sum += query__inside(q, r->list[i].from, r->list[i].to);
	return sum;
}

u64 torch_rests__steps(const struct torch_rests *r, u32 pid)
{
	u64 steps = 0;

	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].pid == pid)
			steps += r->list[i].steps;
	return steps;
}
