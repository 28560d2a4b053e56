// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"
#include "util/array.h"
#include "util/compare.h"

static struct rank *rank_of(const struct ranks *r, u32 pid)
{
	const u32 *index = map__find(&r->by_pid, &pid);

	return index ? &r->list[*index] : NULL;
}

static int index_pids(struct ranks *r)
{
	map__free(&r->by_pid);
	for (u32 i = 0; i < r->n; i++) {
		u32 *index = map__get(&r->by_pid, &r->list[i].pid);

		if (!index)
			return -ENOMEM;
		*index = i;
	}
	return 0;
}

static int add_process(struct ranks *r, const struct query *q, u32 pid, u32 tid, const struct torch_loop *l)
{
	struct rank rank = { .pid = pid, .tid = tid, .loop = l, .task = names__task(q->names, pid, 0), .number = -1 };
	u32 *index = map__get(&r->by_pid, &pid);

	if (!index)
		return -ENOMEM;
	rank.names = q->names;
	rank.total_ns = l ? l->total_ns : 0;
	rank.has_number = rank.task && rank.task->world_size;
	rank.number = rank.has_number ? (s64)rank.task->rank : -1;
	*index = r->n;
	return array__push(r->list, r->n, rank) ? 0 : -ENOMEM;
}

static int list_processes(struct ranks *r, const struct query *q, const struct torch_steps *steps)
{
	struct rank *rank;
	int err = 0;

	for (u32 i = 0; steps && !err && i < steps->n; i++) {
		const struct torch_loop *l = &steps->loops[i];

		if (!rank_of(r, l->pid))
			err = add_process(r, q, l->pid, l->tid, l);
	}
	for (u32 i = 0; !err && i < r->collectives.n; i++) {
		const struct collective_rank *c = &r->collectives.list[i];

		if (!rank_of(r, c->pid))
			err = add_process(r, q, c->pid, c->tid, NULL);
		rank = rank_of(r, c->pid);
		if (err || !rank)
			break;
		rank->has_collectives = true;
		rank->is_nccl |= c->is_nccl;
		if (c->size <= rank->size)
			continue;
		rank->size = c->size;
		if (!rank->has_number)
			rank->number = c->rank;
	}
	return err;
}

/* Drops other training on the machine, which has neither a rank nor collectives. */
static void drop_others(struct ranks *r)
{
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].has_number || r->list[i].has_collectives)
			r->list[n++] = r->list[i];
	r->n = n;
}

/* Returns 0 if the two are ranks of the same job. */
static int compare_job(const struct rank *x, const struct rank *y)
{
	int order = job__compare(x->names, x->pid, y->pid);

	if (order)
		return order;
	if (x->has_number != y->has_number || !x->has_number)
		return y->has_number - x->has_number;
	if (x->has_collectives != y->has_collectives)
		return y->has_collectives - x->has_collectives;
	order = COMPARE(x->task->world_size, y->task->world_size);
	if (!order && x->is_ambiguous)
		order = COMPARE(x->task->host, y->task->host);
	if (!order && x->is_ambiguous)
		order = COMPARE(x->task->ppid, y->task->ppid);
	return order;
}

static int by_job(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	int order = compare_job(x, y);

	order = order ? order : COMPARE(x->number, y->number);
	return order ? order : COMPARE(x->pid, y->pid);
}

/* Returns the number of ranks from list[from] on that are of one job. */
static u32 job_length(const struct ranks *r, u32 from)
{
	u32 to = from + 1;

	while (to < r->n && !compare_job(&r->list[from], &r->list[to]))
		to++;
	return to - from;
}

static bool has_rank_twice(const struct rank *list, u32 n)
{
	for (u32 i = 1; i < n; i++)
		if (list[i].has_number && list[i].task->rank == list[i - 1].task->rank)
			return true;
	return false;
}

/* Sorts the ranks by job. */
static void sort(struct ranks *r)
{
	qsort(r->list, r->n, sizeof(*r->list), by_job);
	for (u32 i = 0, n; i < r->n; i += n) {
		bool is_ambiguous;

		n = job_length(r, i);
		is_ambiguous = has_rank_twice(&r->list[i], n);
		for (u32 k = i; k < i + n; k++)
			r->list[k].is_ambiguous = is_ambiguous;
	}
	qsort(r->list, r->n, sizeof(*r->list), by_job);
}

/* Numbers the jobs of processes with collectives. */
static void set_jobs(struct ranks *r)
{
	u32 job = 0, n;

	for (u32 i = 0; i < r->n; i += n) {
		struct rank *list = &r->list[i];
		bool is_unknown;

		n = job_length(r, i);
		is_unknown = list->is_ambiguous && (n != list->task->world_size || has_rank_twice(list, n));
		if (!list->has_collectives)
			continue;
		job++;
		for (u32 k = 0; k < n; k++) {
			/* a communicator of NCCL has a hash, so its ranks are known all the same */
			list[k].job = is_unknown && !list[k].is_nccl ? 0 : job;
			r->is_ambiguous |= !list[k].job;
		}
	}
	for (u32 i = 0; i < r->collectives.n; i++) {
		const struct rank *rank = rank_of(r, r->collectives.list[i].pid);

		r->collectives.list[i].job = rank ? rank->job : 0;
	}
}

/* Returns 0 if the two are ranks of the same communicator. */
static int compare_communicator(const struct collective_rank *x, const struct collective_rank *y,
				const struct names *names)
{
	int order = COMPARE(x->is_nccl, y->is_nccl);

	if (order)
		return order;
	if (!x->is_nccl)
		order = COMPARE(x->job, y->job);
	else
		order = COMPARE(x->hash, y->hash);
	if (order || (x->is_nccl && x->hash))
		return order ? order : job__compare(names, x->pid, y->pid);
	if (!x->is_nccl && x->job)
		return 0;
	order = COMPARE(x->pid, y->pid);
	return order ? order : COMPARE(x->comm, y->comm);
}

static int by_communicator(const void *a, const void *b, void *names)
{
	const struct collective_rank *x = a, *y = b;
	int order = compare_communicator(x, y, names);

	order = order ? order : COMPARE(x->rank, y->rank);
	return order ? order : COMPARE(x->pid, y->pid);
}

/* Adds what a communicator showed of one of its ranks. */
static void add_sums(struct ranks *r, const struct communicator *c, const struct collective_rank *from)
{
	struct rank *to = rank_of(r, from->pid);
	u64 ns;

	if (!to)
		return;
	if (from->n) {
		ns = from->list[from->n - 1].end - from->list[0].call;
		to->total_ns = ns > to->total_ns ? ns : to->total_ns;
	}
	to->compared += from->compared;
	to->last += from->last;
	to->delayed_ns += from->delayed_ns;
	to->delayed_squares += from->delayed_squares;
	if (from->longest_ns > to->longest_ns) {
		to->longest_ns = from->longest_ns;
		to->longest_at = from->longest_at;
	}
	if (from->has_groups) {
		r->in_groups += from->n;
		r->unmatched += from->n - from->compared;
	}
	to->waited_ns += c->n > 1 ? from->waited_ns : collective_rank__excess(from);
	to->is_estimated |= c->n == 1 && from->is_nccl && from->size != 1;
}

static int compare_communicators(struct ranks *r, const struct query *q)
{
	struct collective_rank *list = r->collectives.list;
	u64 end = query__window(q).to;
	int err = 0;

	if (r->collectives.n)
		qsort_r(list, r->collectives.n, sizeof(*list), by_communicator, q->names);
	for (u32 i = 0, n; !err && i < r->collectives.n; i += n) {
		struct communicator c;

		for (n = 1; i + n < r->collectives.n && !compare_communicator(&list[i], &list[i + n], q->names);)
			n++;
		err = communicator__compare(&c, &list[i], n, q->names, end);
		for (u32 k = 0; k < n; k++)
			add_sums(r, &c, &list[i + k]);
		r->compared += c.compared;
		r->lacks_kernels |= c.compared && list[i].is_nccl && !c.has_device;
		if (!err && !array__push(r->communicators, r->n_communicators, c))
			err = -ENOMEM;
	}
	return err;
}

int ranks__new(struct ranks **out, const struct query *q, const struct torch_steps *steps)
{
	struct ranks *r = calloc(1, sizeof(*r));
	int err;

	*out = r;
	if (!r)
		return -ENOMEM;
	map__init(&r->by_pid, sizeof(u32), sizeof(u32));
	err = collective_ranks__read(&r->collectives, q);
	if (!err)
		err = list_processes(r, q, steps);
	drop_others(r);
	if (err || !r->n)
		return err;
	sort(r);
	err = index_pids(r);
	if (err)
		return err;
	set_jobs(r);
	return compare_communicators(r, q);
}

void ranks__free(struct ranks *r)
{
	if (!r)
		return;
	collective_ranks__free(&r->collectives);
	map__free(&r->by_pid);
	free(r->communicators);
	free(r->list);
	free(r);
}

const struct communicator *ranks__stuck(const struct ranks *r)
{
	const struct communicator *found = NULL;

	for (const struct communicator *c = r->communicators; c < r->communicators + r->n_communicators; c++)
		if (c->stuck >= 0 && (!found || c->stuck_ns > found->stuck_ns))
			found = c;
	return found;
}

const struct rank *ranks__absent(const struct ranks *r, const struct communicator *c)
{
	for (u32 i = 0; i < c->n; i++)
		if (collective_rank__is_absent(&c->ranks[i], c->stuck))
			return rank_of(r, c->ranks[i].pid);
	return NULL;
}

/*
 * Equal ranks are last in turns. If in each step any of them had been, with the delay that this step has: is the sum of
 * this one's delays within two standard deviations of the mean?
 */
static bool is_by_chance(const struct ranks *r, const struct rank *rank)
{
	double sum = 0, squares = 0, n = 0, above;

	for (u32 i = 0; i < r->n; i++) {
		if (r->list[i].job != rank->job)
			continue;
		n++;
		sum += (double)r->list[i].delayed_ns;
		squares += r->list[i].delayed_squares;
	}
	above = (double)rank->delayed_ns - sum / n;
	return above < 0 || above * above < 4 * squares * (n - 1) / (n * n);
}

const struct rank *ranks__straggler(const struct ranks *r)
{
	const struct rank *found = NULL;

	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].delayed_ns > (found ? found->delayed_ns : 0))
			found = &r->list[i];
	for (u32 i = 0; found && i < r->n; i++)
		if (&r->list[i] != found && r->list[i].job == found->job &&
		    r->list[i].delayed_ns > found->delayed_ns / 2)
			return NULL;
	return found && is_by_chance(r, found) ? NULL : found;
}

/* A rank is late if its longest delay is so many times the longest one of any other rank of its job. */
#define LATE_TIMES 10

const struct rank *ranks__late(const struct ranks *r, u64 *others_ns)
{
	const struct rank *found = NULL;

	*others_ns = 0;
	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].longest_ns > (found ? found->longest_ns : 0))
			found = &r->list[i];
	for (u32 i = 0; found && i < r->n; i++)
		if (&r->list[i] != found && r->list[i].job == found->job && r->list[i].longest_ns > *others_ns)
			*others_ns = r->list[i].longest_ns;
	return found && *others_ns && found->longest_ns / LATE_TIMES >= *others_ns ? found : NULL;
}

const struct rank *ranks__of(const struct ranks *r, u32 pid)
{
	return rank_of(r, pid);
}

static u64 average(const struct rank *rank, enum torch_phase phase)
{
	return rank->loop ? rank->loop->phase_total_ns[phase] / rank->loop->n : 0;
}

/* Returns the average of a phase's averages in the other ranks of the job. */
static u64 others_average(const struct ranks *r, const struct rank *rank, enum torch_phase phase)
{
	u64 sum = 0;
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++) {
		if (&r->list[i] == rank || r->list[i].job != rank->job || !r->list[i].loop)
			continue;
		sum += average(&r->list[i], phase);
		n++;
	}
	return n ? sum / n : 0;
}

enum torch_phase ranks__slow_phase(const struct ranks *r, const struct rank *rank, u64 *own_ns, u64 *others_ns)
{
	enum torch_phase found = PHASE_OTHER;
	u64 most = 0;

	*own_ns = *others_ns = 0;
	for (u32 p = 0; p < PHASES; p++) {
		u64 own = average(rank, p), others = others_average(r, rank, p);

		if (p == PHASE_COLLECTIVE || !own || own <= others + most)
			continue;
		most = own - others;
		*own_ns = own;
		*others_ns = others;
		found = p;
	}
	return found;
}
