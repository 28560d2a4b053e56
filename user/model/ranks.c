// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"
#include "util/array.h"
#include "util/search.h"

static bool has_process(const struct ranks *r, u32 pid)
{
	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].loop->pid == pid)
			return true;
	return false;
}

/* The loop of a process with the longest steps is the one that trains. */
static int list_processes(struct ranks *r, const struct torch_steps *steps, const struct names *names)
{
	for (u32 i = 0; i < steps->n; i++) {
		const struct torch_loop *l = &steps->loops[i];
		struct rank rank = { .loop = l, .task = names__task(names, l->pid, 0) };

		rank.names = names;
		rank.has_number = rank.task && rank.task->world_size;
		rank.has_collectives = l->phase_total_ns[PHASE_COLLECTIVE];
		/* other training on the machine has neither a rank nor collectives */
		if (has_process(r, l->pid) || (!rank.has_number && !rank.has_collectives))
			continue;
		if (!array__push(r->list, r->n, rank))
			return -ENOMEM;
	}
	return 0;
}

static int compare_u32(u32 a, u32 b)
{
	return a < b ? -1 : a > b;
}

/* Returns 0 if the two are ranks of the same job. */
static int compare_job(const struct rank *x, const struct rank *y)
{
	int order = job__compare(x->names, x->loop->pid, y->loop->pid);

	if (order)
		return order;
	if (x->has_number != y->has_number || !x->has_number)
		return y->has_number - x->has_number;
	if (x->has_collectives != y->has_collectives)
		return y->has_collectives - x->has_collectives;
	order = compare_u32(x->task->world_size, y->task->world_size);
	if (!order && x->is_ambiguous)
		order = compare_u32(x->task->host, y->task->host);
	if (!order && x->is_ambiguous)
		order = compare_u32(x->task->ppid, y->task->ppid);
	return order;
}

static int by_job(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	int order = compare_job(x, y);

	if (!order && x->has_number)
		order = compare_u32(x->task->rank, y->task->rank);
	return order ? order : compare_u32(x->loop->pid, y->loop->pid);
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

static bool is_numbered(const struct torch_loop *l)
{
	return !strcmp(l->boundary, "ProfilerStep#N");
}

/*
 * Numbers that the program counts are the same in all ranks. Others begin where the recording did, which may be one
 * step later in one rank than in another, so the step in the middle of a loop belongs to the one of the first rank that
 * ended at the nearest time.
 */
static s64 ahead_of(const struct torch_loop *first, const struct torch_loop *l)
{
	u32 middle = l->n / 2, at;
	u64 end = l->steps[middle].end;

	if (is_numbered(first) && is_numbered(l))
		return (s64)l->steps[0].number - (s64)first->steps[0].number;
	at = (u32)SEARCH(first->n, i, first->steps[i].end < end);
	if (at == first->n || (at && end - first->steps[at - 1].end < first->steps[at].end - end))
		at--;
	return (s64)at - middle;
}

/* Returns the rank's step that belongs to step i of the first rank; NULL: it has none. */
static const struct torch_step *step_of(const struct rank *rank, u32 i)
{
	s64 index = (s64)i - rank->ahead;

	return index >= 0 && index < rank->loop->n ? &rank->loop->steps[index] : NULL;
}

static u64 most_collectives(const struct rank *list, u32 n, u32 step)
{
	u64 most = 0;

	for (u32 k = 0; k < n; k++) {
		const struct torch_step *s = step_of(&list[k], step);

		most = s && s->collectives > most ? s->collectives : most;
	}
	return most;
}

/*
 * Compares a step between the ranks of a job that have as many collectives in it as any other. Returns false if these
 * are fewer than two.
 */
static bool compare_step(struct rank *list, u32 n, u32 step)
{
	u64 least = ~0ull, second = ~0ull, collectives = most_collectives(list, n, step);
	struct rank *last = NULL;
	u32 compared = 0;

	for (u32 k = 0; collectives && k < n; k++) {
		const struct torch_step *s = step_of(&list[k], step);

		if (!s || s->collectives < collectives)
			continue;
		compared++;
		if (s->phase_ns[PHASE_COLLECTIVE] < least) {
			second = least;
			least = s->phase_ns[PHASE_COLLECTIVE];
			last = &list[k];
		} else if (s->phase_ns[PHASE_COLLECTIVE] < second) {
			second = s->phase_ns[PHASE_COLLECTIVE];
		}
	}
	if (compared < 2)
		return false;
	if (second > least) {
		last->last_steps++;
		last->delayed_ns += second - least;
		last->delayed_squares += (double)(second - least) * (double)(second - least);
	}
	for (u32 k = 0; k < n; k++) {
		const struct torch_step *s = step_of(&list[k], step);

		if (s && s->collectives == collectives)
			list[k].waited_ns += s->phase_ns[PHASE_COLLECTIVE] - least;
	}
	return true;
}

static void compare_job_steps(struct ranks *r, struct rank *list, u32 n, u32 job)
{
	u64 compared = 0;

	if (list->is_ambiguous && (n != list->task->world_size || has_rank_twice(list, n))) {
		r->is_ambiguous = true;
		return;
	}
	for (u32 i = 1; i < n; i++)
		list[i].ahead = ahead_of(list->loop, list[i].loop);
	for (u32 i = 0; i < list->loop->n; i++)
		compared += compare_step(list, n, i);
	for (u32 i = 0; i < n; i++) {
		list[i].job = job;
		list[i].compared = compared;
	}
	r->compared += compared;
}

int ranks__new(struct ranks **out, const struct torch_steps *steps, const struct names *names)
{
	struct ranks *r = calloc(1, sizeof(*r));
	u32 n, job = 0;
	int err;

	*out = r;
	if (!r)
		return -ENOMEM;
	err = list_processes(r, steps, names);
	if (err || !r->n)
		return err;
	sort(r);
	for (u32 i = 0; i < r->n; i += n) {
		n = job_length(r, i);
		if (r->list[i].has_collectives)
			compare_job_steps(r, &r->list[i], n, ++job);
	}
	return 0;
}

void ranks__free(struct ranks *r)
{
	if (!r)
		return;
	free(r->list);
	free(r);
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

static u64 average(const struct rank *rank, enum torch_phase phase)
{
	return rank->loop->phase_total_ns[phase] / rank->loop->n;
}

/* Returns the average of a phase's averages in the other ranks of the job. */
static u64 others_average(const struct ranks *r, const struct rank *rank, enum torch_phase phase)
{
	u64 sum = 0;
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++) {
		if (&r->list[i] == rank || r->list[i].job != rank->job)
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

		if (p == PHASE_COLLECTIVE || own <= others + most)
			continue;
		most = own - others;
		*own_ns = own;
		*others_ns = others;
		found = p;
	}
	return found;
}
