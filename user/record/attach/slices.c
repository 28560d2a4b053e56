// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits what families sched, sample and gil cost the processes that they follow. Their programs run at each switch,
 * wake-up and wait for the GIL. A service that answers short requests has so many of them that it would lose 3 to 10%
 * of its CPU time. So once the cost is above the limit (--cost-limit), these programs are attached for slices of time
 * only. The trace says which times were left out (meta_unmeasured, gil_slice). docs/sampling.md has the measurements.
 *
 * The families estimate their cost by the number of their records (session__add_probing). They share one budget. It
 * grows by the limit's share of the time for which the followed threads were on a CPU, and shrinks by the cost. While
 * it is negative, a slice ends after SLICE_NS, and none begins for up to SLICE_DETACHED_MAX. Between two slices these
 * programs are detached.
 */
#include "record/attach/slices.h"

#include "record/parts.h"

#include <errno.h>
#include <unistd.h>

#define SECOND 1000000000LL

/* The first CREDIT_NS of the traced time are measured without a limit, so that short recordings are complete. */
#define CREDIT_NS (10 * SECOND)
#define SLICE_NS  (SECOND / 5)
/*
 * While the programs are detached, parts of this time are written, so that a trace that is cut off has all but the last
 * second of it. At its end core_slices_resume writes all of it; readers join what overlaps.
 */
#define PART_NS SECOND
/* for tests */
#define DETACHED_EARLY (SECOND / 2)

/* SONDE_TEST=early-slices: slices of fixed lengths and intervals from the start on */
static bool is_early(void)
{
	return session__test_switch("early-slices");
}

static bool is_limited(const struct session *s)
{
	const struct schema_family *f = schema__family(s->embedded.schema, "sched");

	return s->args->cost_limit > 0 && f && s->load.family_on[f->id];
}

/* Returns the host of the family with this id if its programs are attached in slices of time, else NULL. */
static const struct family_host *sliced_host(const struct session *s, u32 id)
{
	const struct family_host *h = hosts__of(s, id);

	return h && h->sliced ? h : NULL;
}

static void each_program(struct session *s, void (*fn)(struct session *s, const char *program))
{
	for (u32 id = 0; id < FAMILY_MAX; id++) {
		const struct family_host *h = sliced_host(s, id);

		for (const char *const *name = h ? h->sliced : NULL; name && *name; name++) {
			const struct program *p = probes__program(&s->embedded.probes, *name);

			if (p && p->enabled)
				fn(s, *name);
		}
	}
}

static void attach_program(struct session *s, const char *program)
{
	session__attach(s, program);
}

/* Returns whether the iterator has run. If not, what it would have written is missing. */
static bool run_iter(struct session *s, const char *name, u32 pid)
{
	const struct program *p = probes__program(&s->embedded.probes, name);
	int err = session__run_iter(s, name, pid);

	if (err && err != -ENOENT && p && !attacher__gone(s->attacher))
		session__lost(s, p->family->name, LOSS_BUDGET, 1);
	return !err;
}

static void set_slice(struct session *s, bool measures)
{
	for (u32 id = 0; id < FAMILY_MAX; id++)
		if (hosts__of(s, id) && hosts__of(s, id)->set_slice)
			hosts__of(s, id)->set_slice(s, measures);
}

static void run_open_iterators(struct session *s)
{
	for (u32 id = 0; id < FAMILY_MAX; id++)
		if (sliced_host(s, id))
			run_iter(s, hosts__of(s, id)->open_iterator, 0);
}

static void end_slice(struct session *s, u64 now)
{
	struct slices *l = &s->slices;

	l->detached_since = session__now(s);
	l->next = now + (is_early() ? DETACHED_EARLY : SLICE_NS);
	/*
	 * stops the programs of sched and sample at one moment, up to which the iterators below write open intervals;
	 * set_slice() stops those of gil
	 */
	if (!run_iter(s, "core_slices_pause", getpid())) {
		l->detached_since = 0;
		return;
	}
	l->n_detached++;
	l->part_since = session__now(s);
	run_open_iterators(s);
	each_program(s, session__detach);
	/* set_slice() depends on how many records of the slice the families have counted, so all are drained before */
	drain__all(s);
	set_slice(s, false);
	l->run_rate = (double)(l->slice_run_ns + l->run_ns) / (double)(l->detached_since - l->slice_from + 1);
}

u64 slices__left_out(const struct slices *l, u64 from, u64 until)
{
	from = l->detached_since > from ? l->detached_since : from;
	return l->detached_since && until > from ? until - from : 0;
}

u64 slices__sum(const struct slices *l, u64 now)
{
	return l->unmeasured_ns + slices__left_out(l, 0, now);
}

static void add_unmeasured(struct slices *l, u64 until)
{
	l->unmeasured_ns += until - l->detached_since;
	l->detached_since = 0;
}

static void begin_slice(struct session *s)
{
	struct slices *l = &s->slices;

	l->next = session__now(s) + SLICE_NS;
	each_program(s, attach_program);
	if (!run_iter(s, "core_slices_resume", getpid())) {
		each_program(s, session__detach);
		return;
	}
	set_slice(s, true);
	for (u32 id = 0; id < FAMILY_MAX; id++)
		if (sliced_host(s, id) && family_host__follows(s, hosts__of(s, id)))
			run_iter(s, hosts__of(s, id)->follow_iterator, 0);
	l->slice_from = session__now(s);
	add_unmeasured(l, l->slice_from);
	l->slice_run_ns = l->run_ns = 0;
	l->next = l->slice_from + SLICE_NS;
}

static void update_budget(struct session *s, u64 now)
{
	struct slices *l = &s->slices;
	double ns = (double)(now - l->last), run = (double)l->run_ns;

	/* between slices no time on a CPU is recorded: run_rate, that of the slice before, replaces it */
	if (l->detached_since)
		run += l->run_rate * ns;
	slice_budget__update(&l->budget, ns, run, (double)l->cost_ns, s->args->cost_limit);
	l->slice_run_ns += l->run_ns;
	l->run_ns = l->cost_ns = 0;
	l->last = now;
}

/* Takes ns from the time without a limit (CREDIT_NS); false if it is used up. Pauses of the recording do not use it. */
static bool use_credit(struct session *s, u64 ns)
{
	struct slices *l = &s->slices;

	if (is_early() || suspension__is_on(&s->suspension) || l->credit_used >= CREDIT_NS)
		return false;
	l->credit_used += ns;
	return true;
}

static void write_part(struct session *s, u64 now)
{
	struct meta_unmeasured e = { .event = { .time = now, .id = ID_meta_unmeasured },
				     .start = s->slices.part_since };

	if (now < e.start + PART_NS)
		return;
	session__emit(s, &e, sizeof(e));
	s->slices.part_since = now;
}

void slices__tick(struct session *s, u64 now)
{
	struct slices *l = &s->slices;
	bool may_measure;

	if (!is_limited(s))
		return;
	if (!l->slice_from)
		l->last = l->slice_from = s->time.started;
	if (l->detached_since)
		write_part(s, now);
	may_measure = use_credit(s, now - l->last);
	update_budget(s, now);
	if (may_measure)
		l->budget.ns = 0;
	may_measure |= l->budget.ns >= 0;
	if (now < l->next)
		return;
	if (l->detached_since && (is_early() || may_measure || now > l->detached_since + SLICE_DETACHED_MAX)) {
		begin_slice(s);
		return;
	}
	if (l->detached_since || (!is_early() && may_measure))
		return;
	if (!l->n_detached)
		session__warn(s,
			      "scheduler events and waits are recorded in slices of time from here on, because all "
			      "of them would take more than %.3g%% of the processes' CPU time (--cost-limit)",
			      100 * s->args->cost_limit);
	end_slice(s, now);
}

void slices__stop(struct session *s)
{
	if (s->slices.detached_since) {
		/* writes the time without a slice; nothing is attached that could begin a slice */
		session__run_iter(s, "core_slices_resume", getpid());
		add_unmeasured(&s->slices, session__now(s));
		return;
	}
	/* an iterator finds what a thread does now, which soon is not what it did when the slice ended */
	drain__all(s);
	run_open_iterators(s);
}

void session__add_probing(struct session *s, u64 run_ns, u64 cost_ns)
{
	s->slices.run_ns += run_ns;
	s->slices.cost_ns += cost_ns;
}
