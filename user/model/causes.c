// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/causes.h"

#include "model/throttle.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct part_key {
	struct thread_key thread;
	u32 reason;
	u32 blocked;
};

struct part {
	u64 ns, times;
	enum cause_kind kind;
	const char *file;
};

/* Time of one kind: of a thread, or of a process, summed over the threads for which the kind counts. */
struct sum {
	u64 ns, wall_ns, times;
	u32 threads;
};

/* A call or wait of one process and kind, summed over the threads for which the kind counts. */
struct call_key {
	u32 pid, kind, reason;
};

struct call_sum {
	u64 ns, times;
	u64 file_ns; /* time of the part that belongs to `file` */
	const char *file;
};

struct sums {
	u64 wall_ns; /* of a process: that of its longest thread */
	struct sum kinds[CAUSE_KINDS];
};

struct quota {
	u64 throttled, periods, throttled_periods;
};

struct causes {
	const struct query *args;
	struct map parts; /* struct part_key -> struct part */
	/* A cache of recent parts: intervals arrive thread by thread, and a thread repeats few activities. */
	struct {
		struct part_key key;
		struct part *part;
	} recent[8];
	struct map threads; /* struct thread_key -> struct sums */
	struct map processes; /* u32 pid -> struct sums */
	struct map call_sums; /* struct call_key -> struct call_sum */
	struct map quotas; /* u32 pid -> struct quota */
	struct cause_files *files;
	struct cause *ranked;
	u32 n_ranked;
};

int causes__new(struct causes **out, const struct query *args)
{
	struct causes *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return -ENOMEM;
	c->args = args;
	map__init(&c->parts, sizeof(struct part_key), sizeof(struct part));
	map__init(&c->threads, sizeof(struct thread_key), sizeof(struct sums));
	map__init(&c->processes, sizeof(u32), sizeof(struct sums));
	map__init(&c->call_sums, sizeof(struct call_key), sizeof(struct call_sum));
	map__init(&c->quotas, sizeof(u32), sizeof(struct quota));
	return 0;
}

void causes__free(struct causes *c)
{
	if (!c)
		return;
	MAPS_FREE(&c->parts, &c->threads, &c->processes, &c->call_sums, &c->quotas);
	cause_files__free(c->files);
	free(c->ranked);
	free(c);
}

static struct part *part_of(struct causes *c, const struct part_key *key)
{
	u32 slot = (key->reason ^ key->reason >> 28) % ARRAY_LEN(c->recent);

	if (!c->recent[slot].part || memcmp(&c->recent[slot].key, key, sizeof(*key))) {
		c->recent[slot].key = *key;
		c->recent[slot].part = map__get(&c->parts, key);
	}
	return c->recent[slot].part;
}

int causes__add(struct causes *c, const struct activity_interval *i)
{
	struct part_key key = { i->thread, i->reason, i->uninterruptible };
	struct part *p;

	if (i->state == ACTIVITY_UNKNOWN)
		return 0;
	p = part_of(c, &key);
	if (!p)
		return -ENOMEM;
	p->ns += i->to - i->from;
	p->times += i->is_new_reason;
	return 0;
}

static int on_throttle(const struct throttle *t, void *arg)
{
	struct causes *c = arg;
	struct quota *q = map__get(&c->quotas, &t->pid);

	if (!q)
		return -ENOMEM;
	q->throttled += t->throttled;
	q->periods += t->periods;
	q->throttled_periods += t->throttled_periods;
	return 0;
}

/* Files are read only if the kind of some call depends on them. */
static int kind_of(struct causes *c, const struct activity *activity, const struct part_key *key, struct part *p)
{
	enum activity_cause cause = activity__cause(activity, key->reason);
	int err = 0;

	p->kind = cause__kind_of(cause);
	if (cause != ACTIVITY_TRANSFER)
		return 0;
	if (!c->files)
		err = cause_files__new(&c->files, c->args);
	if (err)
		return err;
	p->kind = cause_files__find(c->files, key->thread.pid, activity__name(activity, key->reason), &p->file);
	if (key->blocked)
		p->kind = CAUSE_DISK;
	return 0;
}

static int add_to_thread(struct causes *c, const struct part_key *key, const struct part *p)
{
	struct sums *t = map__get(&c->threads, &key->thread);
	struct sum *sum;

	if (!t)
		return -ENOMEM;
	sum = &t->kinds[p->kind];
	sum->ns += p->ns;
	sum->times += p->times;
	t->wall_ns += p->ns;
	return 0;
}

/* Does a quota explain the runnable time? */
static bool is_quota(const struct causes *c, u32 pid, u64 runnable_ns)
{
	const struct quota *q = map__find(&c->quotas, &pid);

	return q && q->throttled_periods &&
	       (throttle__in_most(q->throttled_periods, q->periods) || 2 * q->throttled >= runnable_ns);
}

/* A thread counts for a kind if the kind took at least a tenth of its time. */
static bool counts(const struct sums *thread, u32 kind)
{
	return thread->kinds[kind].ns && thread->kinds[kind].ns >= thread->wall_ns / 10;
}

static int add_to_process(struct causes *c, u32 pid, const struct sums *t)
{
	struct sums *p = map__get(&c->processes, &pid);

	if (!p)
		return -ENOMEM;
	if (t->wall_ns > p->wall_ns)
		p->wall_ns = t->wall_ns;
	for (u32 k = 0; k < CAUSE_KINDS; k++) {
		if (!counts(t, k))
			continue;
		p->kinds[k].ns += t->kinds[k].ns;
		p->kinds[k].wall_ns += t->wall_ns;
		p->kinds[k].times += t->kinds[k].times;
		p->kinds[k].threads++;
	}
	return 0;
}

/* Sums over the same threads and waits as add_to_process. */
static int add_to_call_sums(struct causes *c, const struct part_key *key, const struct part *p)
{
	const struct sums *thread = map__find(&c->threads, &key->thread);
	struct call_key call = { key->thread.pid, p->kind, key->reason };
	struct call_sum *w;

	/* sum_up moved the runnable time of this thread to the quota */
	if (p->kind == CAUSE_CPU && !thread->kinds[CAUSE_CPU].ns)
		call.kind = CAUSE_QUOTA;
	if (!counts(thread, call.kind))
		return 0;
	w = map__get(&c->call_sums, &call);
	if (!w)
		return -ENOMEM;
	w->ns += p->ns;
	w->times += p->times;
	if (p->ns > w->file_ns) {
		w->file_ns = p->ns;
		w->file = p->file;
	}
	return 0;
}

static int sum_up(struct causes *c, const struct activity *activity)
{
	struct query all = *c->args;
	int err;

	all.tids.n = 0;
	err = throttles__read(&all, on_throttle, c);
	for (u32 i = 0; !err && i < c->parts.n; i++) {
		err = kind_of(c, activity, map__key(&c->parts, i), map__value(&c->parts, i));
		if (!err)
			err = add_to_thread(c, map__key(&c->parts, i), map__value(&c->parts, i));
	}
	for (u32 i = 0; !err && i < c->threads.n; i++) {
		const struct thread_key *key = map__key(&c->threads, i);
		struct sums *t = map__value(&c->threads, i);

		if (is_quota(c, key->pid, t->kinds[CAUSE_CPU].ns)) {
			t->kinds[CAUSE_QUOTA] = t->kinds[CAUSE_CPU];
			t->kinds[CAUSE_CPU] = (struct sum){ 0 };
		}
		err = add_to_process(c, key->pid, t);
	}
	for (u32 i = 0; !err && i < c->parts.n; i++)
		err = add_to_call_sums(c, map__key(&c->parts, i), map__value(&c->parts, i));
	return err;
}

static bool comes_before(const struct cause *a, const struct cause *b)
{
	return a->tier != b->tier ? a->tier < b->tier : a->ns > b->ns;
}

/*
 * A process that lived for 50 ms and was runnable for 40 of them explains nothing about a job of two seconds that
 * slept. So a cause that is both short and a small part of the longest process's time ranks after those that are
 * not, even after sleep or idleness.
 */
#define SHORT_NS 100000000ULL

static u32 tier_of(enum cause_kind kind, u64 ns, u64 longest)
{
	bool little = ns < SHORT_NS && ns < longest / 20;

	return little ? CAUSE_TIER_LITTLE : cause__tier(kind);
}

static u64 longest_of(const struct causes *c)
{
	u64 longest = 0;

	MAP_EACH(const struct sums *p, &c->processes)
		longest = p->wall_ns > longest ? p->wall_ns : longest;
	return longest;
}

static int by_rank(const void *a, const void *b)
{
	return comes_before(a, b) ? -1 : comes_before(b, a) ? 1 : 0;
}

/* Maps each process and kind to the index in `call_sums` of the call that took most of its time; `reason` is 0. */
static int find_calls(const struct causes *c, struct map *calls)
{
	map__init(calls, sizeof(struct call_key), sizeof(u32));
	for (u32 i = 0; i < c->call_sums.n; i++) {
		const struct call_key *k = map__key(&c->call_sums, i);
		const struct call_sum *w = map__value(&c->call_sums, i);
		struct call_key key = { k->pid, k->kind, 0 };
		u32 *call;

		if (k->reason >= ACTIVITY_CAUSE_BASE)
			continue;
		call = map__find(calls, &key);
		if (call && w->ns <= ((const struct call_sum *)map__value(&c->call_sums, *call))->ns)
			continue;
		call = map__get(calls, &key);
		if (!call)
			return -ENOMEM;
		*call = i;
	}
	return 0;
}

static void name_call(const struct causes *c, const struct map *calls, const struct activity *activity,
		      struct cause *cause)
{
	struct call_key key = { cause->pid, cause->kind, 0 };
	const u32 *call = map__find(calls, &key);
	const struct call_sum *w = call ? map__value(&c->call_sums, *call) : NULL;

	if (!w)
		return;
	cause->call = activity__name(activity, ((const struct call_key *)map__key(&c->call_sums, *call))->reason);
	cause->call_ns = w->ns;
	cause->call_times = w->times;
	cause->file = w->file;
}

static int add_causes(struct causes *c, const struct map *calls, const struct activity *activity)
{
	u64 longest = longest_of(c);

	c->ranked = calloc((size_t)c->processes.n * CAUSE_KINDS + 1, sizeof(*c->ranked));
	if (!c->ranked)
		return -ENOMEM;
	for (u32 i = 0; i < c->processes.n; i++) {
		const struct sums *p = map__value(&c->processes, i);

		for (u32 k = 0; k < CAUSE_KINDS; k++) {
			const struct sum *s = &p->kinds[k];

			/* a kind that took little of the process's time is not a cause */
			if (!s->ns || s->ns < p->wall_ns / 10)
				continue;
			c->ranked[c->n_ranked++] = (struct cause){
				.pid = *(const u32 *)map__key(&c->processes, i),
				.threads = s->threads,
				.kind = k,
				.tier = tier_of(k, s->ns, longest),
				.ns = s->ns,
				.wall_ns = s->wall_ns,
				.times = s->times,
			};
			name_call(c, calls, activity, &c->ranked[c->n_ranked - 1]);
		}
	}
	return 0;
}

static int rank(struct causes *c, const struct activity *activity)
{
	struct map calls;
	int err = find_calls(c, &calls);

	if (!err)
		err = add_causes(c, &calls, activity);
	map__free(&calls);
	if (!err)
		qsort(c->ranked, c->n_ranked, sizeof(*c->ranked), by_rank);
	return err;
}

int causes__rank(struct causes *c, const struct activity *activity)
{
	int err = sum_up(c, activity);

	return err ? err : rank(c, activity);
}

const struct cause *causes__ranked(const struct causes *c, u32 i)
{
	return i < c->n_ranked ? &c->ranked[i] : NULL;
}
