// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which differences are larger than noise, and large enough to matter. */
#include <math.h>

#include "diff/diff_private.h"

/* A smaller difference is not a change: two runs of a program differ by as much for reasons that bins do not show. */
#define CHANGE_PART 0.1 /* of the larger side */
#define CHANGE_RATE 1e7 /* ns a second, of functions and threads */
#define CALLS_RATE  1e6 /* the same of calls */

/*
 * An entry that takes less than this on both sides, ns per second, is not compared: each comparison makes the others
 * less certain.
 */
#define COMPARED_RATE  1e6
#define COMPARED_CALLS 8 /* a mean of fewer is not compared */

static bool has_sched(const struct diff *d, u32 side)
{
	return trace__has(d->q[side]->trace, "sched_run") || trace__has(d->q[side]->trace, "sched_off");
}

static bool have_samples(const struct diff *d)
{
	return trace__has(d->q[DIFF_BEFORE]->trace, "sample_cpu") && trace__has(d->q[DIFF_AFTER]->trace, "sample_cpu");
}

/* Adds the variance of one sample to a side without any sample of a function. */
static void add_counting(struct diff_entry *e)
{
	u64 samples = 0;
	double ns = 0;

	for (u32 side = 0; side < DIFF_SIDES; side++) {
		samples += e->side[side].samples;
		ns += noise_sum__total(&e->side[side].ns);
	}
	for (u32 side = 0; samples && side < DIFF_SIDES; side++)
		if (!e->side[side].samples)
			e->side[side].ns.counting = ns / (double)samples * ns / (double)samples;
}

static void compare(const struct diff *d, struct diff_figure *f, const struct noise_sum *a, double a_units,
		    const struct noise_sum *b, double b_units, double least)
{
	double difference, larger;

	f->side[DIFF_BEFORE] = a_units > 0 ? noise_sum__total(a) / a_units : 0;
	f->side[DIFF_AFTER] = b_units > 0 ? noise_sum__total(b) / b_units : 0;
	f->noise = noise__of(a, a_units, b, b_units, d->p);
	difference = fabs(f->side[DIFF_AFTER] - f->side[DIFF_BEFORE]);
	larger = fmax(f->side[DIFF_AFTER], f->side[DIFF_BEFORE]);
	f->is_change = difference > f->noise && difference >= least && difference >= CHANGE_PART * larger;
}

static void compare_calls(const struct diff *d, struct diff_entry *e)
{
	const struct diff_measure *a = &e->side[DIFF_BEFORE], *b = &e->side[DIFF_AFTER];
	double rate = fmax(e->rate.side[DIFF_BEFORE], e->rate.side[DIFF_AFTER]);
	struct noise_sum mean_a, mean_b;

	compare(d, &e->count, &a->calls, d->seconds[DIFF_BEFORE], &b->calls, d->seconds[DIFF_AFTER], 0);
	noise_sum__ratio(&mean_a, &a->ns, &a->calls, 1);
	noise_sum__ratio(&mean_b, &b->ns, &b->calls, 1);
	compare(d, &e->mean, &mean_a, 1, &mean_b, 1, 0);
	/* a call that takes little time in total is irrelevant even if it takes twice as long */
	if (a->times.count < COMPARED_CALLS || b->times.count < COMPARED_CALLS || rate < CALLS_RATE)
		e->mean.is_change = false;
	e->count.is_change = e->count.is_change && rate >= CALLS_RATE;
}

/*
 * Returns a smaller weight for calls that wait until there is something to do, or for a requested time: that is mostly
 * idle time.
 */
static double weight_of_call(const char *name)
{
	enum activity_cause cause = activity_cause__of_syscall(name);

	return cause == ACTIVITY_SLEEP || cause == ACTIVITY_EVENTS || cause == ACTIVITY_FUTEX ?
		       finding_kind__weight(FINDING_IDLE) :
		       1;
}

static double score_of(const struct diff *d, const struct diff_key *key, const struct diff_entry *e)
{
	double difference = e->rate.side[DIFF_AFTER] - e->rate.side[DIFF_BEFORE];

	if (key->section == DIFF_CALLS && (e->rate.is_change || e->mean.is_change || e->count.is_change))
		return difference * weight_of_call(diff__text_of(d, key->name));
	if (!e->rate.is_change)
		return 0;
	return key->section == DIFF_FUNCTIONS ? difference : difference * finding_kind__weight(key->kind);
}

/* Is the entry large enough to be compared? Small entries are only shown. */
static bool is_large(const struct diff_entry *e)
{
	return e->rate.side[DIFF_BEFORE] >= COMPARED_RATE || e->rate.side[DIFF_AFTER] >= COMPARED_RATE;
}

static bool is_recorded(const struct diff *d, const struct diff_key *key, const struct diff_entry *e)
{
	const struct diff_process *p = map__find(&d->processes, &key->process);

	if (p && (p->ns[DIFF_BEFORE] <= 0 || p->ns[DIFF_AFTER] <= 0))
		return false;
	switch (key->section) {
	case DIFF_FUNCTIONS:
		return have_samples(d);
	case DIFF_CALLS:
		return true;
	case DIFF_FINDINGS:
		if (!e->side[DIFF_BEFORE].rank && !e->side[DIFF_AFTER].rank)
			return false;
		return has_sched(d, DIFF_BEFORE) == has_sched(d, DIFF_AFTER);
	default:
		return has_sched(d, DIFF_BEFORE) == has_sched(d, DIFF_AFTER);
	}
}

static struct noise_sum *ns_of(struct diff_entry *e, u32 side)
{
	return &e->side[side].ns;
}

/* Returns the seconds of the trace that an entry's times are of. */
static double seconds_of(const struct diff *d, const struct diff_key *key, u32 side)
{
	return key->section == DIFF_CALLS ? d->seconds[side] : d->measured[side];
}

/* Fills the rates, and counts what is to be compared. */
static void prepare(struct diff *d)
{
	u32 n = 0;

	MAP_EACH_ENTRY(struct diff_entry *e, const struct diff_key *key, &d->entries) {
		if (key->section == DIFF_FUNCTIONS)
			add_counting(e);
		for (u32 side = 0; side < DIFF_SIDES; side++) {
			double seconds = seconds_of(d, key, side);

			e->rate.side[side] = seconds > 0 ? noise_sum__total(ns_of(e, side)) / seconds : 0;
		}
		e->is_compared = is_recorded(d, key, e) && is_large(e);
		d->compared[key->section] += e->is_compared;
		/* calls are compared in three ways */
		n += e->is_compared ? key->section == DIFF_CALLS ? 3 : 1 : 0;
	}
	d->p = NOISE_P / (n ? n : 1);
}

void diff__compare(struct diff *d)
{
	prepare(d);
	MAP_EACH_ENTRY(struct diff_entry *e, const struct diff_key *key, &d->entries) {
		if (!e->is_compared)
			continue;
		compare(d, &e->rate, ns_of(e, DIFF_BEFORE), seconds_of(d, key, DIFF_BEFORE), ns_of(e, DIFF_AFTER),
			seconds_of(d, key, DIFF_AFTER), key->section == DIFF_CALLS ? CALLS_RATE : CHANGE_RATE);
		if (key->section == DIFF_CALLS)
			compare_calls(d, e);
		e->score = score_of(d, key, e);
	}
}
