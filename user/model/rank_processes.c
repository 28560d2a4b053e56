// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/rank_processes.h"

#include <errno.h>
#include <stdlib.h>

#include "model/job.h"
#include "model/query.h"
#include "util/array.h"
#include "util/compare.h"

struct listing {
	struct rank_processes *ranks;
	const struct names *names;
	struct map collectives; /* u32 pid -> u8: processes that had collectives */
	bool failed;
};

static int on_collectives(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), pid);
	struct listing *l = arg;

	for (u32 i = 0; i < rows__count(rows); i++) {
		u32 id = (u32)rows__u64(rows, pid, i);

		if (!map__get(&l->collectives, &id))
			return -ENOMEM;
	}
	return 0;
}

static bool has_rank(const struct task *t)
{
	return t && t->world_size;
}

static void on_process(const struct task *t, void *arg)
{
	struct listing *l = arg;
	struct rank_process p = { t, t->rank, t->world_size, !has_rank(t) };
	bool is_rank = map__find(&l->collectives, &t->id) != NULL;

	if (!l->collectives.n)
		is_rank = has_rank(t) && !has_rank(names__task(l->names, t->ppid, 0));
	if (is_rank && !array__push(l->ranks->list, l->ranks->n, p))
		l->failed = true;
}

COMPARE_BY(by_number, struct rank_process, ASCENDING(is_guess), ASCENDING(rank))
COMPARE_BY(by_start, struct rank_process, ASCENDING(task->start), ASCENDING(task->pid))

static int by_rank(const void *a, const void *b, void *names)
{
	const struct rank_process *x = a, *y = b;
	int order = by_number(a, b);

	order = order ? order : job__compare(names, x->task->id, y->task->id);
	return order ? order : by_start(a, b);
}

/* Numbers the processes without a rank that may be of one job. They are the last ones, and have rank 0 so far. */
static void guess(struct rank_processes *r, const struct names *names)
{
	u32 first = 0, n;

	while (first < r->n && !r->list[first].is_guess)
		first++;
	for (; first < r->n; first += n) {
		u32 id = r->list[first].task->id;

		for (n = 1; first + n < r->n && !job__compare(names, id, r->list[first + n].task->id);)
			n++;
		for (u32 i = 0; i < n; i++) {
			r->list[first + i].rank = i;
			r->list[first + i].world_size = n;
		}
	}
}

int rank_processes__list(struct rank_processes *r, struct trace *t, const struct names *names)
{
	struct query all = { .trace = t };
	struct listing l = { .ranks = r, .names = names };
	int err;

	*r = (struct rank_processes){ 0 };
	map__init(&l.collectives, sizeof(u32), sizeof(u8));
	err = query__read_kind(&all, "torch_collective", on_collectives, &l);
	if (!err)
		names__each_process(names, on_process, &l);
	map__free(&l.collectives);
	if (!err && l.failed)
		err = -ENOMEM;
	if (r->n)
		qsort_r(r->list, r->n, sizeof(*r->list), by_rank, (void *)names);
	guess(r, names);
	return err;
}
