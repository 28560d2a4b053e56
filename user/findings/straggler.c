// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rank of distributed training that all others wait for, by their waits (slow_rank.h). Collectives of PyTorch and
 * of NCCL, if they were recorded (model/ranks.h), add in how many it is last, and the phase of a step that takes it
 * longest. They alone find it where no waits were recorded (with NCCL, GPUs wait), and find a rank that never comes.
 */
#include <stdio.h>
#include <string.h>

#include "findings/group.h"
#include "findings/slow_rank.h"
#include "findings/waited_for.h"
#include "model/ranks.h"
#include "output/table.h"
#include "output/text.h"

/* Fewer collectives may be those of a start. */
#define COMPARED_MIN 4
/* A rank that makes the others wait for a smaller part of its time explains nothing. */
#define SHARE_MIN 10

/* Adds in how many collectives the rank is late, and with steps the phase that takes it longest. */
static void add_collectives(const struct finding_input *in, const struct ranks *r, const struct rank *k,
			    struct finding *f)
{
	u64 own_ns, others_ns, steps;
	enum torch_phase phase;
	char text[sizeof(f->detail)];

	if (!k->loop) {
		snprintf(text, sizeof(text), "it was last in %llu of %llu collectives", k->last, k->compared);
		finding__add_detail(f, text);
		return;
	}
	phase = ranks__slow_phase(r, k, &own_ns, &others_ns);
	/* collectives are recorded in all steps */
	steps = k->loop->n + torch_rests__steps(torch__rests(in->torch->torch), k->pid);
	snprintf(text, sizeof(text),
		 "it delayed each step by %s on average, and was last in %llu of %llu collectives;" CLAUSE
		 "on average it needs %s of a step for %s, the others %s",
		 TEXT_NS(k->delayed_ns / steps), k->last, k->compared, TEXT_NS(own_ns), torch_phase__name(phase),
		 TEXT_NS(others_ns));
	finding__add_detail(f, text);
}

/* A rank that waits for a CPU for a smaller part of its time, %, is hardly slower for that. */
#define CPU_PERCENT 10

/* "computed 88% of its time in load_shard (train.py:31), in the backward pass" */
static void add_activity(const struct finding_input *in, const struct slow_rank *slow, struct finding *f)
{
	const struct profile_thread *t = map__find(&in->profile->threads, &slow->rank->thread);
	double no_cpu = t ? table__percent(t->runnable, t->wall) : 0;
	struct text_buffer text = { .buf = f->detail, .size = sizeof(f->detail) };
	char phrase[128];

	text__add(&text, "it %s %.0f%% of its time",
		  slow->kind == FINDING_COMPUTE ? "computed" : finding_kind__phrase(slow->kind, phrase, sizeof(phrase)),
		  table__percent(slow->code_ns, slow->rank->wall_ns));
	finding_code__add(&text, " in ", &slow->code);
	if (slow->phase && strcmp(slow->phase, f->call))
		text__add(&text, ", in %s", slow->phase);
	if (no_cpu >= CPU_PERCENT)
		text__add(&text, ";" CLAUSE "it waited %.0f%% of its time for a CPU", no_cpu);
}

static struct finding *add(const struct finding_input *in, const struct slow_rank *slow, struct findings *out)
{
	const char *where = rank_phase__collective(in->stacks, slow->waits);
	struct finding *f = findings__add(out, FINDING_STRAGGLER);

	if (!f)
		return NULL;
	f->confidence = FINDING_ATTRIBUTED;
	f->is_measured_part = true;
	f->pid = slow->rank->pid;
	f->tid = slow->rank->thread.tid;
	f->processes = f->threads = slow->others;
	f->lost_ns = slow->lost_ns;
	f->wall_ns = slow->wall_ns;
	/* all ranks wait for it, so nothing else that they do limits the job */
	f->weight = (double)(f->wall_ns + slow->rank->wall_ns) * finding_kind__weight(FINDING_STRAGGLER);
	f->code = slow->code;
	snprintf(f->report, sizeof(f->report), "%s", slow->kind == FINDING_COMPUTE ? "lines" : "offcpu");
	job_rank__label(slow->rank, in->q->names, f->object, sizeof(f->object));
	snprintf(f->call, sizeof(f->call), "%s", where ? where : "collective operations");
	add_activity(in, slow, f);
	return f;
}

static u32 others_of(const struct ranks *r, const struct rank *k)
{
	u32 n = 0;

	for (u32 i = 0; i < r->n; i++)
		n += &r->list[i] != k && r->list[i].job == k->job;
	return n;
}

/* Adds what the rank's thread did in most of its time, and where. */
static void add_thread_activity(const struct finding_input *in, struct finding *f)
{
	struct finding_counterpart *self = &f->counterpart;
	char text[sizeof(self->activity) + 16];

	if (!waited_for__add(in, (struct thread_key){ f->pid, f->tid }, f))
		return;
	f->code = self->code;
	snprintf(text, sizeof(text), "it mostly %s", self->activity);
	finding__add_detail(f, text);
	*self = (struct finding_counterpart){ 0 };
}

static struct finding *add_rank(const struct finding_input *in, const struct rank *k, u32 others, u64 lost_ns,
				struct findings *out)
{
	struct finding *f = findings__add(out, FINDING_STRAGGLER);
	char label[64];

	if (!f)
		return NULL;
	f->pid = k->pid;
	f->tid = k->tid;
	f->processes = f->threads = others;
	f->lost_ns = lost_ns;
	f->wall_ns = k->total_ns > lost_ns ? k->total_ns : lost_ns;
	/* each of the others loses this time */
	f->weight = (double)f->lost_ns * others * finding_kind__weight(FINDING_STRAGGLER);
	names__label(in->q->names, label, sizeof(label), f->pid, 0);
	if (k->number >= 0)
		snprintf(f->object, sizeof(f->object), "rank %lld (%s)", (long long)k->number, label);
	else
		snprintf(f->object, sizeof(f->object), "a rank (%s)", label);
	snprintf(f->call, sizeof(f->call), "collective operations");
	snprintf(f->report, sizeof(f->report), "ranks");
	add_thread_activity(in, f);
	return f;
}

/*
 * Adds what the collectives show: if the ranks' waits were recorded (s->ranks), only about the rank that these show.
 * Calls of NCCL alone do not show that a GPU waits, and collectives of several process groups are not matched surely.
 */
static void add_of_collectives(const struct finding_input *in, const struct slow_ranks *s, const struct ranks *r,
			       struct finding *of_waits, struct findings *out)
{
	const struct rank *k = ranks__straggler(r);
	struct finding *f = of_waits;

	if (!k || k->compared < COMPARED_MIN || r->lacks_kernels || r->in_groups || (f && f->pid != k->pid))
		return;
	if (!f && s->ranks.n < 2 && table__percent(k->delayed_ns, k->total_ns) >= SHARE_MIN)
		f = add_rank(in, k, others_of(r, k), k->delayed_ns, out);
	if (f) {
		snprintf(f->report, sizeof(f->report), "ranks");
		add_collectives(in, r, k, f);
	}
}

/* Adds the rank that had not come to a collective when the trace ended. */
static void add_absent(const struct finding_input *in, const struct ranks *r, struct finding *of_waits,
		       struct findings *out)
{
	const struct communicator *c = ranks__stuck(r);
	const struct rank *k = c ? ranks__absent(r, c) : NULL;
	struct finding *f = of_waits && k && of_waits->pid == k->pid ? of_waits : NULL;
	char text[256], what[128];

	if (!k)
		return;
	if (!f) {
		f = add_rank(in, k, c->n - c->absent, c->stuck_ns, out);
		if (!f)
			return;
		f->wall_ns = k->total_ns + c->stuck_ns;
	}
	communicator__name_operation(c, c->stuck, what, sizeof(what));
	snprintf(f->report, sizeof(f->report), "ranks");
	snprintf(text, sizeof(text), "it%s had not come to %s when the trace ended, for which they had waited for %s",
		 c->absent > 1 ? " and others" : "", what, TEXT_NS(c->stuck_ns));
	finding__add_detail(f, text);
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct slow_ranks s;
	struct ranks *r = NULL;
	struct finding *f = NULL;
	int err = slow_ranks__find(&s, in);

	for (u32 i = 0; !err && i < s.n; i++)
		f = add(in, &s.list[i], out);
	if (!err)
		err = ranks__new(&r, in->q, in->torch);
	if (!err && ranks__stuck(r))
		add_absent(in, r, f, out);
	else if (!err)
		add_of_collectives(in, &s, r, f, out);
	ranks__free(r);
	slow_ranks__free(&s);
	return err;
}

FINDINGS(straggler) = { .name = "straggler", .find = find };
