// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/sample/sample.h"
#include "util/array.h"

static int on_clock(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct profile *p = arg;

	p->threshold = rows__count(rows) ? (u64)view__get(&v, "threshold") : 0;
	return 0;
}

static int read_threshold(struct profile *p)
{
	struct query all = *p->q;

	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	return query__read_kind(&all, "sample_clock", on_clock, p);
}

int profile__new(struct profile **out, const struct query *q, u32 n_parts)
{
	struct trace_window w = query__window(q);
	struct profile *p = calloc(1, sizeof(*p));

	*out = p;
	if (!p)
		return -ENOMEM;
	p->q = q;
	p->n_parts = n_parts;
	p->from = w.from;
	p->width = n_parts ? (w.to - w.from) / n_parts + 1 : 0;
	p->has_sched = trace__has(q->trace, "sched_off") || trace__has(q->trace, "sched_run");
	p->has_off_stacks = trace__has(q->trace, "sample_off");
	map__init(&p->cells, sizeof(struct profile_key), sizeof(struct profile_cell));
	map__init(&p->threads, sizeof(struct thread_key), sizeof(struct profile_thread));
	map__init(&p->samples, sizeof(struct profile_sample_key), sizeof(struct profile_sample));
	return read_threshold(p);
}

void profile__free(struct profile *p)
{
	if (!p)
		return;
	MAP_EACH(struct profile_cell *cell, &p->cells)
		free(cell->parts);
	MAPS_FREE(&p->cells, &p->threads, &p->samples);
	free(p);
}

/*
 * A thread that runs, was preempted, or is in an unknown state outside of calls waits for no object and no other
 * thread, so its key has neither. A preempted thread may have the stack with which it left the CPU.
 */
static struct profile_key key_of(const struct activity_interval *i)
{
	struct profile_key key = { .thread = i->thread,
				   .reason = i->call ? i->call : i->reason,
				   .state = (u8)i->state };

	if (i->state != ACTIVITY_BLOCKED && !i->call &&
	    (i->state != ACTIVITY_UNKNOWN || i->reason >= ACTIVITY_CAUSE_BASE)) {
		key.stack = i->state == ACTIVITY_RUNNABLE ? i->off_stack : 0;
		return key;
	}
	key.stack = i->off_stack ? i->off_stack : i->stack;
	key.object = i->object;
	key.caused_by = i->caused_by;
	key.caused_by_stack = i->caused_by_stack;
	key.uninterruptible = i->uninterruptible;
	key.is_free = i->is_free;
	return key;
}

static struct profile_cell *cell_of(struct profile *p, const struct profile_key *key)
{
	struct profile_key plain = { .thread = key->thread, .reason = key->reason, .state = key->state };
	u32 slot = (key->reason ^ key->reason >> 28 ^ key->stack ^ key->caused_by.tid) % ARRAY_LEN(p->recent);
	struct profile_cell *cell;

	/* the recent cells save most lookups: intervals arrive thread by thread, and a thread has few different ones */
	if (p->recent[slot].cell && !memcmp(&p->recent[slot].key, key, sizeof(*key)))
		return p->recent[slot].cell;
	cell = p->cells.n < PROFILE_CELLS_MAX ? map__get(&p->cells, key) : map__find(&p->cells, key);
	if (!cell && p->cells.n >= PROFILE_CELLS_MAX)
		cell = map__get(&p->cells, &plain);
	p->recent[slot].key = *key;
	p->recent[slot].cell = cell;
	return cell;
}

const struct profile_cell *profile__find(const struct profile *p, const struct activity_interval *i)
{
	struct profile_key key = key_of(i), plain = { .thread = key.thread, .reason = key.reason, .state = key.state };
	const struct profile_cell *cell = map__find(&p->cells, &key);

	return cell ? cell : map__find(&p->cells, &plain);
}

/* If the scheduler was recorded, time in an unknown state is not added to the thread's wall time. */
static void add_to_thread(struct profile_thread *t, const struct activity_interval *i, bool has_sched)
{
	u64 ns = i->to - i->from;

	t->wall += has_sched && i->state == ACTIVITY_UNKNOWN ? 0 : ns;
	t->run += i->state == ACTIVITY_RUNNING ? ns : 0;
	t->runnable += i->state == ACTIVITY_RUNNABLE ? ns : 0;
	t->blocked += i->state == ACTIVITY_BLOCKED ? ns : 0;
	t->unknown += i->state == ACTIVITY_UNKNOWN ? ns : 0;
	t->unmeasured += has_sched && i->state == ACTIVITY_UNKNOWN && i->cause == ACTIVITY_NOT_RECORDED ? ns : 0;
}

static struct profile_thread *thread_of(struct profile *p, const struct thread_key *key)
{
	if (!p->last || p->last_thread.pid != key->pid || p->last_thread.tid != key->tid) {
		p->last_thread = *key;
		p->last = map__get(&p->threads, key);
	}
	return p->last;
}

/*
 * Sums the time since the thread's last wait, and counts it in the cell of the wait that ends it if it was long enough
 * to block an event loop. Waits for the GIL are part of this time: the loop can't continue during them, either.
 */
static void add_busy(struct profile_thread *t, struct profile_cell *cell, const struct activity_interval *i)
{
	if (i->state == ACTIVITY_RUNNING || i->state == ACTIVITY_RUNNABLE || i->cause == ACTIVITY_GIL) {
		t->busy += i->to - i->from;
		return;
	}
	if (i->state == ACTIVITY_BLOCKED && t->busy >= PROFILE_LONG) {
		cell->busy_times++;
		cell->busy_longest = t->busy > cell->busy_longest ? t->busy : cell->busy_longest;
	}
	t->busy = 0;
}

/* Adds an interval to the parts of the time that it lies in. The intervals of a cell arrive in order. 0 or -ENOMEM. */
static int add_to_parts(const struct profile *p, struct profile_cell *cell, u64 from, u64 to)
{
	u64 end;

	for (from = from < p->from ? p->from : from; from < to; from = end) {
		u64 part = (from - p->from) / p->width;

		if (part >= p->n_parts)
			return 0;
		end = p->from + (part + 1) * p->width;
		end = end < to ? end : to;
		if (!cell->n_parts)
			cell->first = (u32)part;
		while (cell->first + cell->n_parts <= part)
			if (!array__push(cell->parts, cell->n_parts, 0))
				return -ENOMEM;
		cell->parts[part - cell->first] += end - from;
	}
	return 0;
}

int profile__add(struct profile *p, const struct activity_interval *i)
{
	struct profile_thread *t = thread_of(p, &i->thread);
	struct profile_key key = key_of(i);
	u32 n = p->cells.n;
	struct profile_cell *cell = cell_of(p, &key);

	if (!t || !cell)
		return -ENOMEM;
	if (p->cells.n > n) {
		cell->next = t->cells;
		t->cells = p->cells.n;
	}
	add_to_thread(t, i, p->has_sched);
	add_busy(t, cell, i);
	if (p->has_sched && i->state == ACTIVITY_UNKNOWN)
		return 0;
	cell->cause = i->cause;
	cell->ns += i->to - i->from;
	cell->times += i->is_first_part;
	/* a short wait with a stack stands for others without one; family gil records all waits for the GIL */
	cell->short_times += i->is_first_part && i->off_stack && i->cause != ACTIVITY_GIL &&
			     i->to - i->from < p->threshold;
	cell->long_times += i->is_first_part && i->to - i->from >= PROFILE_LONG;
	cell->longest = i->to - i->from > cell->longest ? i->to - i->from : cell->longest;
	return p->n_parts ? add_to_parts(p, cell, i->from, i->to) : 0;
}

static int on_samples(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, gil, period, kernel, in_call);
	struct common_fields f = common_fields__of(e);
	struct profile *p = arg;

	for (u32 i = 0; i < rows__count(rows); i++) {
		struct profile_sample_key key = { { (u32)rows__s64(rows, f.pid, i), (u32)rows__s64(rows, f.tid, i) },
						  (u32)rows__s64(rows, stack, i),
						  0 };
		struct profile_sample *s = map__get(&p->samples, &key);
		u64 ns = rows__u64(rows, period, i);

		if (!s)
			return -ENOMEM;
		s->ns += ns;
		s->samples++;
		s->gil_ns += rows__s64(rows, gil, i) == SAMPLE_GIL_HELD ? ns : 0;
		s->kernel_ns += rows__s64(rows, kernel, i) ? ns : 0;
		/* older traces lack the field in_call */
		s->fault_ns += in_call && rows__s64(rows, kernel, i) && !rows__s64(rows, in_call, i) ? ns : 0;
		p->sampled_ns += ns;
	}
	return 0;
}

/* Waits shorter than the threshold are summed by thread, uninterruptible ones separately. */
struct short_key {
	struct thread_key thread;
	u32 uninterruptible;
};

struct short_waits {
	u64 with_stack; /* number of those that have a stack */
	u64 ns, times; /* of those that have no stack */
};

#define SHORT_MIN 4 /* stacks; fewer are too few to represent the waits without one */

static bool has_no_stack(const struct profile_key *key)
{
	return key->state == ACTIVITY_BLOCKED && !key->stack &&
	       (key->reason == ACTIVITY_CAUSE_BASE + ACTIVITY_ASLEEP ||
		key->reason == ACTIVITY_CAUSE_BASE + ACTIVITY_UNINTERRUPTIBLE);
}

static int sum_short(const struct profile *p, struct map *sums)
{
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		struct short_key thread = { key->thread, key->uninterruptible };
		bool unknown = has_no_stack(key);
		struct short_waits *s;

		if (!unknown && (key->state != ACTIVITY_BLOCKED || !key->stack || !cell->short_times))
			continue;
		s = map__get(sums, &thread);
		if (!s)
			return -ENOMEM;
		s->with_stack += unknown ? 0 : cell->short_times;
		s->ns += unknown ? cell->ns : 0;
		s->times += unknown ? cell->times : 0;
	}
	return 0;
}

/*
 * Only some of a thread's short waits have a stack; bpf/probes/sample chooses them evenly by time, so they represent
 * the others, whose time is divided among the cells of those with a stack, in proportion to their number.
 */
static int divide_short(struct profile *p)
{
	struct map sums;
	int err;

	map__init(&sums, sizeof(struct short_key), sizeof(struct short_waits));
	err = sum_short(p, &sums);
	for (u32 i = 0; !err && i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);
		struct profile_cell *cell = profile__cell(p, i);
		struct short_key thread = { key->thread, key->uninterruptible };
		const struct short_waits *s = key->state == ACTIVITY_BLOCKED ? map__find(&sums, &thread) : NULL;

		if (!s || s->with_stack < SHORT_MIN)
			continue;
		if (has_no_stack(key)) {
			cell->ns = cell->times = 0;
			continue;
		}
		if (!key->stack)
			continue;
		cell->ns += (u64)((double)s->ns * (double)cell->short_times / (double)s->with_stack);
		cell->times += (u64)((double)s->times * (double)cell->short_times / (double)s->with_stack);
	}
	map__free(&sums);
	return err;
}

int profile__finish(struct profile *p)
{
	int err = divide_short(p);

	return err ? err : query__read_kind(p->q, "sample_cpu", on_samples, p);
}
