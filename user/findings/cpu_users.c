// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/cpu_private.h"

#include <stdio.h>
#include <string.h>

#include "output/table.h"
#include "output/text.h"
#include "util/path.h"

static u32 priority_of(const struct finding_input *in, u32 pid)
{
	const struct on_cpus *p = map__find(&in->cpus->processes, &pid);

	return p ? p->priority : 0;
}

/* A lower number is a better priority; 0: not known. */
static bool is_better(u32 priority, u32 than)
{
	return priority && than && priority < than;
}

static bool is_recorders_name(const char *name)
{
	return !strcmp(name, "sonde") || path__begins_with(name, "sonde-");
}

/* sonde's own processes only record: no target's wait is attributed to them. */
static bool is_recorder(const struct finding_input *in, u32 pid)
{
	const char *comm = names__comm(in->q->names, pid, 0);

	return comm && is_recorders_name(comm);
}

/*
 * Returns the process that used most of the time of the CPUs for which the group's process waited; each CPU counts by
 * the length of these waits. is_preferred: only among processes with a better priority. *percent: its share of the time
 * of these CPUs; *all_percent: the share of all processes among which it was chosen.
 */
static u32 main_user(const struct finding_input *in, const struct group *g, bool is_preferred, double *percent,
		     double *all_percent)
{
	u32 own_priority = priority_of(in, g->pid);
	double best = 0, total = 0, all = 0, window = (double)query__measured(in->q);
	struct map sums;
	u32 found = 0;

	/* includes threads of the process that are not in the group */
	MAP_EACH_ENTRY(const u64 *ns, const struct cpu_key *key, &in->cpus->waited)
		all += key->pid == g->pid ? (double)*ns : 0;
	map__init(&sums, sizeof(u32), sizeof(double));
	MAP_EACH_ENTRY(const u64 *ns, const struct cpu_key *key, &in->cpus->run) {
		struct cpu_key own = { g->pid, key->cpu };
		const u64 *waited = map__find(&in->cpus->waited, &own);
		double *sum;

		if (!waited || is_recorder(in, key->pid) ||
		    (is_preferred && !is_better(priority_of(in, key->pid), own_priority)))
			continue;
		sum = map__get(&sums, &key->pid);
		if (sum)
			*sum += (double)*ns * (double)*waited;
	}
	MAP_EACH_ENTRY(const double *ns, const u32 *pid, &sums) {
		total += *ns;
		found = *ns > best ? *pid : found;
		best = *ns > best ? *ns : best;
	}
	map__free(&sums);
	*percent = window && all ? 100 * best / all / window : 0;
	*all_percent = best > 0 ? *percent * total / best : 0;
	return found;
}

/* Priorities of the kernel (include/linux/sched/prio.h) */
#define REALTIME_PRIORITIES 100
#define NICE_0_PRIORITY	    120

/* Processes that used the CPUs for a smaller share of the time do not explain the wait. */
#define PREFERRED_PERCENT 25

/* Fewer preemptions are not significant. */
#define PREEMPTED_MIN 10

/* The other process that preempted this one most often. percent: its share of all preemptions */
static u32 preempter(const struct finding_input *in, u32 pid, double *percent)
{
	u64 all = 0, most = 0;
	u32 found = 0;
	struct map sums;

	map__init(&sums, sizeof(u32), sizeof(u64));
	MAP_EACH_ENTRY(const u64 *n, const struct taker_key *key, &in->cpus->takers) {
		u32 taker = key->pid == pid ? names__process_of(in->q->names, key->tid) : 0;
		u64 *sum;

		all += key->pid == pid ? *n : 0;
		sum = taker && taker != pid && !is_recorder(in, taker) ? map__get(&sums, &taker) : NULL;
		if (!sum)
			continue;
		*sum += *n;
		if (*sum <= most)
			continue;
		most = *sum;
		found = taker;
	}
	map__free(&sums);
	*percent = table__percent(most, all);
	return all >= PREEMPTED_MIN ? found : 0;
}

static char *write_priority(u32 priority, char *buf, size_t size)
{
	if (priority < REALTIME_PRIORITIES)
		snprintf(buf, size, "real time");
	else
		snprintf(buf, size, "nice %d", (int)priority - NICE_0_PRIORITY);
	return buf;
}

/* Do processes with a better priority use the CPUs for a large part of the time? */
static bool add_preferred(const struct finding_input *in, const struct group *g, struct finding *f)
{
	double percent, all;
	u32 pid = main_user(in, g, true, &percent, &all);
	char own[24], other[24], text[128];

	if (!pid || all < PREFERRED_PERCENT)
		return false;
	f->counterpart.pid = pid;
	f->counterpart.cpus_percent = percent;
	snprintf(text, sizeof(text), "its priority is lower (%s) than that of other processes (%s)",
		 write_priority(priority_of(in, g->pid), own, sizeof(own)),
		 write_priority(priority_of(in, pid), other, sizeof(other)));
	finding__add_detail(f, text);
	return true;
}

/* A recording that took less of the CPUs hardly delays others. */
#define RECORDER_PERCENT 5

static void add_recorder(const struct finding_input *in, struct finding *f)
{
	u64 ns = 0;
	double percent;
	char text[64];

	MAP_EACH_ENTRY(const u64 *ran, const struct cpu_key *key, &in->cpus->run)
		ns += is_recorder(in, key->pid) ? *ran : 0;
	percent = table__percent(ns, in->cpus->online * query__measured(in->q));
	snprintf(text, sizeof(text), "the recording itself took %.0f%% of the CPUs", percent);
	if (percent >= RECORDER_PERCENT)
		finding__add_detail(f, text);
}

/* Names that had less of the CPUs do not explain the wait; at most so many are added. */
#define OTHERS_PERCENT 10
#define OTHERS_MAX     2

/* Adds the names of processes that were not recorded and had most of the CPUs. */
static void add_others(const struct finding_input *in, struct finding *f)
{
	struct text_buffer s = { .buf = (char[96]){ 0 }, .size = 96 };
	u64 all = in->cpus->online * query__measured(in->q), below = ~0ull;

	for (u32 n = 0; n < OTHERS_MAX; n++) {
		const char *name = NULL;
		u64 most = 0;

		MAP_EACH_ENTRY(const u64 *ns, const struct other_name *other, &in->cpus->others)
			if (*ns > most && *ns < below && !is_recorders_name(other->text)) {
				most = *ns;
				name = other->text;
			}
		if (!name || 100 * most < OTHERS_PERCENT * all)
			break;
		text__add(&s, "%s %s %.0f%%", n ? "," : "meanwhile, of all CPUs' time,", name,
			  table__percent(most, all));
		below = most;
	}
	if (s.len) {
		text__add(&s, " (not recorded)");
		finding__add_detail(f, s.buf);
	}
}

/* Adds the process that used the CPUs during the wait. */
void cpu__add_users(const struct finding_input *in, const struct group *g, struct finding *f)
{
	double percent, all, times;
	u32 pid = main_user(in, g, false, &percent, &all), other = preempter(in, g->pid, &times);
	char text[96];

	add_recorder(in, f);
	add_others(in, f);
	if (add_preferred(in, g, f))
		return;
	if (pid && percent >= 25 && pid != g->pid) {
		f->counterpart.pid = pid;
		f->counterpart.cpus_percent = percent;
	} else if (other && times >= 30) {
		f->counterpart.pid = other;
		f->counterpart.percent = times;
	} else if (pid && percent >= 25 && g->threads > 1) {
		snprintf(text, sizeof(text), "its own threads compete: they had the CPUs for %.0f%% of the time",
			 percent);
		finding__add_detail(f, text);
	}
}
