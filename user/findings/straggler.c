// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rank of distributed training that all others wait for. */
#include <stdio.h>
#include <string.h>

#include "findings/findings.h"
#include "findings/waited_for.h"
#include "model/ranks.h"
#include "output/table.h"
#include "output/text.h"

/* Fewer steps may be those of a start. */
#define STEPS_MIN 4
/* A rank that makes the others wait for a smaller part of its time explains nothing. */
#define SHARE_MIN 10

/* Adds what the rank's thread did in most of its time, and where. */
static void add_activity(const struct finding_input *in, struct finding *f)
{
	struct finding_counterpart *self = &f->counterpart;
	struct text_buffer text = { .buf = f->detail, .size = sizeof(f->detail), .len = strlen(f->detail) };

	if (!waited_for__add(in, (struct thread_key){ f->pid, f->tid }, f))
		return;
	f->code = self->code;
	text__add(&text, ";" CLAUSE "there it mostly %s", self->activity);
	*self = (struct finding_counterpart){ 0 };
}

static void add(const struct finding_input *in, const struct ranks *r, const struct rank *k, struct findings *out)
{
	struct finding *f = findings__add(out, FINDING_STRAGGLER);
	char rank[32] = "";
	u64 own_ns, others_ns;
	enum torch_phase phase;

	if (!f)
		return;
	f->pid = k->loop->pid;
	f->tid = k->loop->tid;
	f->processes = f->threads = 1;
	f->lost_ns = k->delayed_ns;
	f->wall_ns = k->loop->total_ns > k->delayed_ns ? k->loop->total_ns : k->delayed_ns;
	f->times = k->last_steps;
	f->weight = (double)f->lost_ns * finding_kind__weight(FINDING_STRAGGLER);
	snprintf(f->report, sizeof(f->report), "ranks");
	phase = ranks__slow_phase(r, k, &own_ns, &others_ns);
	if (k->has_number)
		snprintf(rank, sizeof(rank), "it is rank %u, and ", k->task->rank);
	snprintf(f->detail, sizeof(f->detail),
		 "%sdelayed each step by %s on average, last in %llu of %llu steps;" CLAUSE
		 "on average it needs %s of a step for %s, the others %s",
		 rank, TEXT_NS(k->delayed_ns / k->loop->n), k->last_steps, k->compared, TEXT_NS(own_ns),
		 torch_phase__name(phase), TEXT_NS(others_ns));
	add_activity(in, f);
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct ranks *r;
	const struct rank *k;
	int err;

	if (!in->torch)
		return 0;
	err = ranks__new(&r, in->torch, in->q->names);
	k = err ? NULL : ranks__straggler(r);
	if (k && k->compared >= STEPS_MIN && table__percent(k->delayed_ns, k->loop->total_ns) >= SHARE_MIN)
		add(in, r, k, out);
	ranks__free(r);
	return err;
}

FINDINGS(straggler) = { .name = "straggler", .find = find };
