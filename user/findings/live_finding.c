// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/live_finding.h"

#include <stdio.h>

#include "model/lock_kind.h"
#include "output/table.h"
#include "output/text.h"

/* A wait or a computation with less than 1/SHARE_MIN of the time is not reported. */
#define SHARE_MIN 20

static void begin(struct finding *f, enum finding_kind kind, u32 pid, u32 threads, u64 lost, u64 interval)
{
	*f = (struct finding){ .kind = kind, .pid = pid, .processes = 1, .threads = threads, .lost_ns = lost };
	f->wall_ns = interval * (threads ? threads : 1);
	/* a sum of samples may exceed the interval by a sample */
	if (f->lost_ns > f->wall_ns)
		f->lost_ns = f->wall_ns;
	f->weight = (double)f->lost_ns * finding_kind__weight(kind);
}

/* The GIL with most waiting, and the function that held it for most of that */
static bool gil(const struct live_view *v, struct finding *f)
{
	const struct live_gil *g = NULL;
	const struct live_pair *pair = NULL;

	for (u32 i = 0; i < v->n_gils; i++)
		g = !g || v->gils[i].wait_ns > g->wait_ns ? &v->gils[i] : g;
	if (!g || !g->threads)
		return false;
	begin(f, FINDING_GIL, g->pid, g->threads, g->wait_ns, v->to - v->from);
	for (u32 i = 0; i < v->n_pairs && !pair; i++)
		pair = v->pairs[i].pid == g->pid ? &v->pairs[i] : NULL;
	if (!pair)
		return true;
	snprintf(f->code.native, sizeof(f->code.native), "%.120s", pair->waiter);
	snprintf(f->counterpart.code.native, sizeof(f->counterpart.code.native), "%.120s", pair->holder);
	f->counterpart.pid = g->pid;
	f->counterpart.percent = table__percent(pair->wait_ns, f->lost_ns);
	f->counterpart.percent = f->counterpart.percent > 100 ? 100 : f->counterpart.percent;
	return true;
}

static bool compute(const struct live_view *v, struct finding *f)
{
	const struct live_process *p = v->n_processes ? v->processes : NULL;

	if (!p || !p->ns)
		return false;
	begin(f, FINDING_COMPUTE, p->pid, p->threads, p->ns, v->to - v->from);
	if (*p->function)
		snprintf(f->detail, sizeof(f->detail), "%.0f%% of that in %s",
			 table__percent(p->function_ns < p->ns ? p->function_ns : p->ns, p->ns), p->function);
	return true;
}

/* Returns the kind of a wait, by the rules of classify.c where its stack has a function that these know. */
static enum finding_kind kind_of(const struct live_process *p)
{
	switch (p->activity) {
	case LIVE_DISK:
		return FINDING_DISK;
	case LIVE_PEER:
		return p->rule ? (enum finding_kind)p->rule : FINDING_PEER;
	case LIVE_LOCK:
		if (p->rule)
			return (enum finding_kind)p->rule;
		return p->lock == LOCK_KIND_MUTEX || p->lock == LOCK_KIND_UNKNOWN ? FINDING_LOCK : FINDING_IDLE;
	default:
		return FINDING_IDLE;
	}
}

/* The wait that costs most */
static bool find_wait(const struct live_view *v, struct finding *f)
{
	const struct live_process *most = NULL;
	u64 measured = v->to - v->from - v->unmeasured_ns;
	enum finding_kind kind;
	double weight = 0;

	for (u32 i = 0; i < v->n_waits; i++) {
		const struct live_process *p = &v->waits[i];
		double of = (double)p->ns * finding_kind__weight(kind_of(p));

		if (kind_of(p) == FINDING_IDLE || of <= weight)
			continue;
		most = p;
		weight = of;
	}
	if (!most)
		return false;
	kind = kind_of(most);
	begin(f, kind, most->pid, most->threads, most->ns, measured);
	/* all other times are of the whole interval */
	f->weight *= measured ? (double)(v->to - v->from) / (double)measured : 1;
	snprintf(f->code.native, sizeof(f->code.native), "%.120s", most->function);
	if (*most->ended_by && kind != FINDING_DISK) {
		snprintf(f->counterpart.code.native, sizeof(f->counterpart.code.native), "%.120s", most->ended_by);
		f->counterpart.pid = most->pid;
		f->counterpart.percent =
			table__percent(most->ended_by_ns < most->ns ? most->ended_by_ns : most->ns, most->ns);
	}
	return true;
}

/*
 * The part of its time for which a quota throttled a process. In each throttled period the threads of the cgroup used
 * the quota and were throttled for the rest, on every CPU that they ran on: that gives the number of these CPUs.
 */
static double throttled_part(const struct throttle *t)
{
	double periods = (double)t->throttled_periods, cpus = 1;

	if (t->time == t->since || !t->period || !t->throttled_periods)
		return 0;
	cpus = ((double)t->throttled + periods * (double)t->quota) / (periods * (double)t->period);
	return (double)t->throttled / (double)(t->time - t->since) / (cpus > 1 ? cpus : 1);
}

/*
 * The quota that withheld most time. is_cause: it did so in most periods, so it explains what the process waits for.
 */
static bool quota(const struct live_view *v, struct finding *f, bool *is_cause)
{
	const struct throttle *t = NULL;

	for (u32 i = 0; i < v->n_throttles; i++)
		t = !t || throttled_part(&v->throttles[i]) > throttled_part(t) ? &v->throttles[i] : t;
	if (!t || throttled_part(t) < 1.0 / SHARE_MIN)
		return false;
	begin(f, FINDING_QUOTA, t->pid, 1, (u64)(throttled_part(t) * (double)(v->to - v->from)), v->to - v->from);
	*is_cause = throttle__in_most(t->throttled_periods, t->periods);
	snprintf(f->detail, sizeof(f->detail),
		 "its quota lets it use %s in each %s, and was used up in %llu of %llu periods", TEXT_NS(t->quota),
		 TEXT_NS(t->period), t->throttled_periods, t->periods);
	return true;
}

bool live_finding__first(const struct live_view *v, const struct names *names, struct finding *f)
{
	struct query q = { .names = (struct names *)names, .start = v->from, .from = v->from, .to = v->to };
	struct finding other;
	bool is_cause, found = gil(v, f) && f->lost_ns >= f->wall_ns / SHARE_MIN;

	/* for one process, prefers its waits for the GIL: they name the holder, which is what computes */
	if (compute(v, &other) && (!found || (other.pid != f->pid && other.weight > f->weight))) {
		*f = other;
		found = true;
	}
	if (find_wait(v, &other) && (!found || other.weight > f->weight)) {
		*f = other;
		found = true;
	}
	/* a quota explains why threads of its processes wait, for locks of throttled threads, too */
	if (quota(v, &other, &is_cause) && (!found || (other.pid == f->pid && is_cause) || other.weight > f->weight)) {
		*f = other;
		found = true;
	}
	if (!found || f->lost_ns < f->wall_ns / SHARE_MIN)
		return false;
	finding__write(f, &q);
	return true;
}
