// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for other ranks in collective operations of PyTorch that run on the CPU (gloo): the rank that waits least is
 * the one for which the others wait.
 */
#include <stdio.h>
#include <string.h>

#include "findings/waited_for.h"

/* It waits for at most this part of the share for which the others wait. */
#define LESS_PART 2

/* Are both in the same function of the program, whose ranks are processes of their own? */
static bool is_same_function(const struct finding_input *in, u32 a, u32 b)
{
	const struct stack_frame *x = stacks__frame(in->stacks, a), *y = stacks__frame(in->stacks, b);

	return x && y && !strcmp(x->name, y->name) && !strcmp(x->file, y->file);
}

/* Returns the thread of another process that waits least in the group's function, as a share of its time. */
static struct thread_key least_waiting(const struct finding_input *in, const struct group *g)
{
	u32 code = profile__cell(in->profile, g->cells[0])->code, user = names__user(in->q->names, g->pid);
	struct thread_key least = { 0 };
	double least_share = (double)g->ns / (double)g->wall_ns / LESS_PART;
	struct map threads;

	map__init(&threads, sizeof(struct thread_key), sizeof(u64));
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		u64 *ns = NULL;

		if (cell->kind == FINDING_RANKS && key->thread.pid != g->pid &&
		    names__user(in->q->names, key->thread.pid) == user && is_same_function(in, cell->code, code))
			ns = map__get(&threads, &key->thread);
		if (ns)
			*ns += cell->ns;
	}
	MAP_EACH_ENTRY(const u64 *ns, const struct thread_key *key, &threads) {
		const struct profile_thread *all = map__find(&in->profile->threads, key);
		double share = all && all->wall ? (double)*ns / (double)all->wall : 1;

		if (share > least_share)
			continue;
		least_share = share;
		least = *key;
	}
	map__free(&threads);
	return least;
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct thread_key least = g->n && g->wall_ns ? least_waiting(in, g) : (struct thread_key){ 0 };

	(void)arg;
	snprintf(f->report, sizeof(f->report), "offcpu");
	if (least.pid)
		waited_for__add(in, least, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_RANKS, out, complete, NULL);
}

FINDINGS(other_ranks) = { .name = "other_ranks", .find = find };
