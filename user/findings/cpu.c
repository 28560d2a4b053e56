// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What processes computed, and why they waited for CPUs: a quota throttled them, their threads were crowded on one CPU,
 * or others had the CPUs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/compute.h"
#include "findings/cpu_private.h"
#include "findings/import.h"
#include "output/text.h"

/*
 * Returns the quota that throttled the process in at least a tenth of the periods, and sets *cgroup; NULL: none. Of the
 * quotas of several levels of cgroups, returns the one that throttled it for longest.
 */
static const struct throttle *quota_of(const struct finding_input *in, const struct group *g, const char **cgroup)
{
	const struct throttle *most = NULL;

	MAP_EACH_ENTRY(const struct throttle *q, const struct quota_key *key, &in->cpus->quotas)
		if (key->pid == g->pid && (!most || q->throttled > most->throttled)) {
			most = q;
			*cgroup = key->cgroup;
		}
	return most && most->throttled_periods && 10 * most->throttled_periods >= most->periods ? most : NULL;
}

static void describe_quota(struct finding *f, const struct throttle *q, const char *cgroup)
{
	snprintf(f->object, sizeof(f->object), "cgroup %s", cgroup);
	snprintf(f->detail, sizeof(f->detail),
		 "its quota is %s of CPU time in each %s;" CLAUSE "it was throttled in %llu of %llu periods, for %s",
		 TEXT_NS(q->quota), TEXT_NS(q->period), q->throttled_periods, q->periods, TEXT_NS(q->throttled));
}

/* A thread that hardly sleeps and has run on one CPU for so many intervals is probably not allowed to use others. */
#define SPANS_ON_ONE 200

/*
 * Was it allowed to use only one CPU, for at least 95% of its time on CPUs? Then f names the CPU. If it was allowed a
 * few, f states their number, but the result is false.
 */
static bool is_pinned(const struct finding_input *in, const struct on_cpus *p, struct finding *f)
{
	if (p->restricted_ns < p->allowed_ns - p->allowed_ns / 20)
		return false;
	if (p->allowed != 1) {
		snprintf(f->object, sizeof(f->object), "its affinity or cpuset allows %u of %u CPUs", p->allowed,
			 in->cpus->online);
		return false;
	}
	f->confidence = FINDING_MEASURED;
	snprintf(f->object, sizeof(f->object), "CPU %u, to which it is pinned", p->main_cpu);
	return true;
}

/*
 * Did it run on one CPU only and wait for that CPU, although the machine has others? A trace without the number of
 * allowed CPUs shows only on which CPUs it ran. The scheduler may leave a single thread on one CPU without any
 * restriction, so for one thread the finding is a guess.
 */
static bool is_crowded(const struct finding_input *in, const struct group *g, u64 waited, struct finding *f)
{
	const struct on_cpus *p = map__find(&in->cpus->processes, &g->pid);

	if (!p || in->cpus->online < 2 || 3 * waited < g->wall_ns)
		return false;
	if (p->allowed_ns)
		return is_pinned(in, p, f);
	if (g->threads < 2 && (p->main_cpu_ns != p->run_ns || p->spans < SPANS_ON_ONE ||
			       p->run_ns + waited < g->wall_ns - g->wall_ns / 20))
		return false;
	if (p->main_cpu_ns < p->run_ns - p->run_ns / 50)
		return false;
	f->confidence = g->threads < 2 ? FINDING_GUESSED : FINDING_ATTRIBUTED;
	snprintf(f->object, sizeof(f->object), "CPU %u", p->main_cpu);
	return true;
}

/* The CPU time that the threads of a group needed */
struct demand {
	u64 run, waited; /* ns */
	u64 throttled; /* part of waited: in seconds in which the quota was used up in at least half of the periods */
};

static struct demand demand_of(const struct finding_input *in, const struct group *g)
{
	struct demand d = { 0 };

	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);

		if (cell->kind == FINDING_COMPUTE)
			d.run += cell->ns;
		else
			d.waited += cell->ns;
		d.throttled += cell->kind == FINDING_QUOTA ? cell->ns : 0;
	}
	return d;
}

/* Returns the ns of waits for a CPU within the finding's function; 0 if the stacks of less than 90% are known. */
static u64 in_code(const struct finding_input *in, const struct group *g, const struct finding *f)
{
	u64 ns = 0, known = 0, all = 0;

	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);
		const struct stack_frame *frame = stacks__frame(in->stacks, cell->code);

		if (cell->kind == FINDING_COMPUTE)
			continue;
		all += cell->ns;
		known += profile__key(in->profile, g->cells[i])->stack ? cell->ns : 0;
		ns += frame && !strcmp(frame->name, f->code.function) ? cell->ns : 0;
	}
	return 10 * known >= 9 * all ? ns : 0;
}

/* Describes why it waited for a CPU, and which processes used the CPUs meanwhile. */
static void describe_wait(const struct finding_input *in, const struct group *g, const struct demand *d,
			  struct finding *f)
{
	const char *cgroup;
	const struct throttle *q = quota_of(in, g, &cgroup);

	f->kind = d->run >= d->waited ? FINDING_COMPUTE : FINDING_CPU;
	f->confidence = FINDING_ATTRIBUTED;
	if (f->kind == FINDING_CPU)
		snprintf(f->report, sizeof(f->report), "sched");
	if (q) {
		describe_quota(f, q, cgroup);
		if (throttle__in_most(q->throttled_periods, q->periods) || 2 * q->throttled >= d->waited ||
		    2 * d->throttled > d->waited)
			f->kind = FINDING_QUOTA;
	} else if (is_crowded(in, g, d->waited, f)) {
		f->kind = FINDING_AFFINITY;
		snprintf(f->advice, sizeof(f->advice), "`taskset -pc %u` shows which CPUs it may use.",
			 names__number(in->q->names, g->pid));
	} else if (d->throttled > d->waited / 2) {
		f->kind = FINDING_QUOTA;
	}
	group__set_waits_kind(in, g, f->kind == FINDING_COMPUTE ? FINDING_CPU : f->kind);
	if (f->kind != FINDING_QUOTA)
		cpu__add_users(in, g, f);
}

/*
 * Waiting for a CPU has less weight than computing, because it depends on what other processes do.
 * collected: the part of the CPU time that the finding about garbage collections counts.
 */
static void weigh(const struct demand *d, double collected, struct finding *f)
{
	double waited = (double)d->waited * finding_kind__weight(f->kind == FINDING_COMPUTE ? FINDING_CPU : f->kind);

	f->weight = waited + (double)d->run * (1 - collected) * finding_kind__weight(FINDING_COMPUTE);
}

/* If the trace lacks the events of imports and most samples are in imports, turns the finding into one on imports. */
static int add_imports(const struct finding_input *in, struct finding *f)
{
	struct imported imported;
	int err;

	if ((f->kind != FINDING_COMPUTE && f->kind != FINDING_CPU) || trace__has(in->q->trace, "python_import"))
		return 0;
	err = imported__of(&imported, in, f->pid);
	if (err || 2 * imported.sampled_ns < imported.all_ns || !imported.sampled_ns)
		return err;
	imported__complete(in, &imported, f);
	f->ran_ns = f->in_code_ns = 0;
	return imported__add_times(in, f);
}

/* One finding for what a process computed, and for its waits for the CPUs to do so. */
static int add_demand(const struct finding_input *in, const struct group *g, struct findings *out)
{
	struct demand d = demand_of(in, g);
	double collected;
	bool ran = 20 * d.run >= g->wall_ns, waited = 20 * d.waited >= g->wall_ns;
	struct finding *f = group__add_finding(in, g, FINDING_COMPUTE, out);

	if (!f)
		return 0;
	/* the stacks in these cells are those of the waits before the threads became runnable */
	f->code = (struct finding_code){ 0 };
	collected = computed__complete(in, f);
	if (ran && !waited)
		d.waited = 0;
	if (waited && !ran)
		d.run = 0;
	if (!d.run)
		*f->detail = '\0';
	if (d.waited)
		describe_wait(in, g, &d, f);
	f->ran_ns = d.waited ? d.run : 0;
	f->lost_ns = f->kind == FINDING_QUOTA || f->kind == FINDING_AFFINITY ? d.waited : d.run + d.waited;
	f->in_code_ns = f->lost_ns == d.waited ? in_code(in, g, f) : 0;
	weigh(&d, collected, f);
	return add_imports(in, f);
}

static int find(const struct finding_input *in, struct findings *out)
{
	const u64 kinds = FINDING_BIT(FINDING_COMPUTE) | FINDING_BIT(FINDING_CPU) | FINDING_BIT(FINDING_QUOTA);
	struct groups groups = { 0 };
	struct map sampled;
	int err;

	map__init(&sampled, sizeof(u32), sizeof(u8));
	err = cpu__add_sampled(in, &sampled, out);
	if (!err)
		err = groups__make(&groups, in, kinds, GROUPS_PROCESS);
	for (u32 i = 0; !err && i < groups.n; i++)
		err = map__find(&sampled, &groups.list[i].pid) ? 0 : add_demand(in, &groups.list[i], out);
	groups__free(&groups);
	map__free(&sampled);
	return err;
}

FINDINGS(cpu) = { .name = "cpu", .find = find };
