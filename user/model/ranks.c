// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

		rank.has_number = rank.task && rank.task->world_size;
		/* other training on the machine has neither a rank nor collectives */
		if (has_process(r, l->pid) || (!rank.has_number && !l->phase_total_ns[PHASE_COLLECTIVE]))
			continue;
		if (!array__push(r->list, r->n, rank))
			return -ENOMEM;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->has_number != y->has_number)
		return y->has_number - x->has_number;
	if (x->has_number && x->task->rank != y->task->rank)
		return x->task->rank < y->task->rank ? -1 : 1;
	return x->loop->pid < y->loop->pid ? -1 : x->loop->pid > y->loop->pid;
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

static void compare_step(struct ranks *r, u32 i)
{
	u64 least = ~0ull, second = ~0ull;
	struct rank *last = NULL;
	u32 n = 0;

	for (u32 k = 0; k < r->n; k++) {
		const struct torch_step *s = step_of(&r->list[k], i);
		u64 ns = s ? s->phase_ns[PHASE_COLLECTIVE] : 0;

		n += s != NULL;
		if (s && ns < least) {
			second = least;
			least = ns;
			last = &r->list[k];
		} else if (s && ns < second) {
			second = ns;
		}
	}
	if (n < 2)
		return;
	r->aligned++;
	if (second > least) {
		last->last_steps++;
		last->delayed_ns += second - least;
	}
	for (u32 k = 0; k < r->n; k++) {
		const struct torch_step *s = step_of(&r->list[k], i);

		r->list[k].waited_ns += s ? s->phase_ns[PHASE_COLLECTIVE] - least : 0;
	}
}

int ranks__new(struct ranks **out, const struct torch_steps *steps, const struct names *names)
{
	struct ranks *r = calloc(1, sizeof(*r));
	int err;

	*out = r;
	if (!r)
		return -ENOMEM;
	err = list_processes(r, steps, names);
	if (err || !r->n)
		return err;
	qsort(r->list, r->n, sizeof(*r->list), by_rank);
	for (u32 i = 1; i < r->n; i++)
		r->list[i].ahead = ahead_of(r->list[0].loop, r->list[i].loop);
	for (u32 i = 0; i < r->list[0].loop->n; i++)
		compare_step(r, i);
	return 0;
}

void ranks__free(struct ranks *r)
{
	if (!r)
		return;
	free(r->list);
	free(r);
}

const struct rank *ranks__straggler(const struct ranks *r)
{
	const struct rank *found = NULL;

	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].delayed_ns > (found ? found->delayed_ns : 0))
			found = &r->list[i];
	return found;
}

static u64 average(const struct rank *rank, enum torch_phase phase)
{
	return rank->loop->phase_total_ns[phase] / rank->loop->n;
}

/* Returns the average of the other ranks' averages of a phase. */
static u64 others_average(const struct ranks *r, const struct rank *rank, enum torch_phase phase)
{
	u64 sum = 0;

	for (u32 i = 0; i < r->n; i++)
		sum += &r->list[i] == rank ? 0 : average(&r->list[i], phase);
	return r->n > 1 ? sum / (r->n - 1) : 0;
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
