// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/cpu_sums.h"

#include <errno.h>
#include <stdio.h>

void cpu_sums__init(struct cpu_sums *c, u32 online)
{
	c->online = online;
	map__init(&c->run, sizeof(struct cpu_key), sizeof(u64));
	map__init(&c->processes, sizeof(u32), sizeof(struct on_cpus));
	map__init(&c->waited, sizeof(struct cpu_key), sizeof(u64));
	map__init(&c->takers, sizeof(struct taker_key), sizeof(u64));
	map__init(&c->others, sizeof(struct other_name), sizeof(u64));
	map__init(&c->quotas, sizeof(struct quota_key), sizeof(struct throttle));
}

void cpu_sums__free(struct cpu_sums *c)
{
	MAPS_FREE(&c->run, &c->processes, &c->waited, &c->takers, &c->others, &c->quotas);
}

/* Stores on which CPU the process ran most, how many it may use, and which thread preempted it. */
static int add_run(struct cpu_sums *c, const struct sched_span *s, u64 ns, u64 on_this_cpu, bool ends)
{
	struct on_cpus *p = map__get(&c->processes, &s->pid);
	u64 *n = ends && s->state == SCHED_RUNNABLE && s->next_tid ?
			 map__get(&c->takers, &(struct taker_key){ s->pid, s->next_tid }) :
			 &(u64){ 0 };

	if (!p || !n)
		return -ENOMEM;
	++*n;
	p->spans += ends;
	p->run_ns += ns;
	if (on_this_cpu > p->main_cpu_ns) {
		p->main_cpu_ns = on_this_cpu;
		p->main_cpu = s->cpu;
	}
	p->priority = s->priority;
	p->allowed_ns += s->allowed ? ns : 0;
	if (s->allowed && s->allowed < c->online) {
		p->restricted_ns += ns;
		p->allowed = s->allowed > p->allowed ? s->allowed : p->allowed;
	}
	return 0;
}

int cpu_sums__add(struct cpu_sums *c, const struct sched_span *s, const struct query *q)
{
	struct cpu_key key = { s->pid, s->cpu };
	u64 ns = query__inside(q, s->on_cpu ? s->start : s->wake, s->end), *sum;

	if (!ns)
		return 0;
	sum = map__get(s->on_cpu ? &c->run : &c->waited, &key);
	if (!sum)
		return -ENOMEM;
	*sum += ns;
	return s->on_cpu ? add_run(c, s, ns, *sum, s->end <= q->to) : 0;
}

int cpu_sums__add_throttle(struct cpu_sums *c, const struct throttle *t)
{
	struct quota_key key = { .pid = t->pid };
	struct throttle *q;

	snprintf(key.cgroup, sizeof(key.cgroup), "%.*s", (int)t->cgroup_len, t->cgroup);
	q = map__get(&c->quotas, &key);
	if (!q)
		return -ENOMEM;
	q->quota = t->quota;
	q->period = t->period;
	q->throttled += t->throttled;
	q->periods += t->periods;
	q->throttled_periods += t->throttled_periods;
	return 0;
}

struct others {
	struct cpu_sums *cpus;
	const struct query *q;
};

static int on_others(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), comm);
	const struct others *o = arg;

	ROWS_EACH(v, rows) {
		u64 since = (u64)view__get(&v, "since"), time = (u64)view__get(&v, "time");
		double part = time > since ? (double)query__inside(o->q, since, time) / (double)(time - since) : 0;
		struct other_name name = { 0 };
		const char *text;
		u32 len;
		u64 *ns;

		text = view__text(&v, comm, &len);
		snprintf(name.text, sizeof(name.text), "%.*s", (int)len, text);
		ns = map__get(&o->cpus->others, &name);
		if (!ns)
			return -ENOMEM;
		*ns += (u64)(part * (double)view__get(&v, "ran"));
	}
	return 0;
}

int cpu_sums__read_others(struct cpu_sums *c, const struct query *q)
{
	struct others o = { c, q };
	struct query all = *q;

	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	return query__read_kind(&all, "sched_other", on_others, &o);
}
