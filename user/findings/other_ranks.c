// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for other ranks in collective operations, of processes none of whose other ranks is slow (straggler.c). */
#include <stdio.h>

#include "findings/group.h"
#include "findings/slow_rank.h"
#include "output/table.h"

/*
 * Weight of waits of equal ranks for each other: no rank is to blame. Below this part of the time, %, they are what
 * collective operations take.
 */
#define MUTUAL_PERCENT 80
#define MUTUAL_FACTOR  0.01

/* Returns whether another rank of the process's job was recorded. */
static bool has_others(const struct job_ranks *ranks, u32 pid)
{
	const struct job_rank *own = job_ranks__of(ranks, pid);
	u32 i = own ? (u32)(own - ranks->list) : 0;

	return own && ((i && own[-1].job == own->job) || (i + 1 < ranks->n && own[1].job == own->job));
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	const struct slow_ranks *s = arg;

	(void)in;
	snprintf(f->report, sizeof(f->report), "offcpu");
	if (!has_others(&s->ranks, g->pid) || slow_ranks__of_job(s, g->pid))
		return 0;
	if (table__percent(f->lost_ns, f->wall_ns) < MUTUAL_PERCENT)
		f->weight *= MUTUAL_FACTOR;
	finding__add_detail(f, "the ranks wait for each other: none is slower than the others beyond chance");
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct slow_ranks s;
	int err = slow_ranks__find(&s, in);

	if (!err)
		err = groups__each_finding(in, FINDING_RANKS, out, complete, &s);
	slow_ranks__free(&s);
	return err;
}

FINDINGS(other_ranks) = { .name = "other_ranks", .find = find };
