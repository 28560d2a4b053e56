// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_blame.h"

#include <errno.h>
#include <stdlib.h>

#include "model/lock_blame_private.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/saturate.h"
#include "util/search.h"

/* A sample of a thread that held a lock */
struct held_sample {
	struct thread_key thread;
	u64 time;
	u32 stack;
};

struct sampling {
	struct lock_blame *b;
	struct held_sample *list;
	u32 n;
};

COMPARE_BY(by_from, struct lock_segment, ASCENDING(from))

static int by_to(const void *a, const void *b, void *arg)
{
	const struct lock_segment *segments = arg, *x = &segments[*(const u32 *)a], *y = &segments[*(const u32 *)b];

	return x->to < y->to ? -1 : x->to > y->to;
}

static void rewind_sweep(struct lock_holder *h)
{
	h->n_begun = h->n_ended = 0;
	map__free(&h->active);
	map__init(&h->active, sizeof(u32), sizeof(u32));
}

/* Do the segments end in the order in which they begin? */
static bool ends_in_order(const struct lock_holder *h)
{
	for (u32 i = 1; i < h->n; i++)
		if (h->segments[i].to < h->segments[i - 1].to)
			return false;
	return true;
}

static int order_segments(struct lock_holder *h)
{
	rewind_sweep(h);
	h->ends = calloc((size_t)h->n + 1, sizeof(*h->ends));
	if (!h->ends)
		return -ENOMEM;
	if (!h->n)
		return 0;
	qsort(h->segments, h->n, sizeof(*h->segments), by_from);
	for (u32 i = 0; i < h->n; i++)
		h->ends[i] = i;
	if (!ends_in_order(h))
		qsort_r(h->ends, h->n, sizeof(*h->ends), by_to, h->segments);
	return 0;
}

int lock_blame__new(struct lock_blame **out, const struct query *q, const struct stacks *stacks,
		    const struct activity *activity)
{
	struct lock_blame *b = calloc(1, sizeof(*b));
	int err;

	*out = b;
	if (!b)
		return -ENOMEM;
	b->q = q;
	b->stacks = stacks;
	b->activity = activity;
	b->has_activity = trace__has(q->trace, "sched_run") || trace__has(q->trace, "sched_off");
	map__init(&b->holders, sizeof(struct thread_key), sizeof(struct lock_holder));
	map__init(&b->rows, sizeof(struct lock_row_key), sizeof(struct lock_row));
	map__init(&b->activities, sizeof(struct lock_activity_key), sizeof(struct lock_activity));
	map__init(&b->codes, sizeof(u32), sizeof(u32));
	err = lock_waits__load(&b->waits, q, stacks, activity__futexes(activity));
	if (!err)
		err = lock_segments__cut(b);
	for (u32 i = 0; !err && i < b->holders.n; i++)
		err = order_segments(map__value(&b->holders, i));
	return err;
}

void lock_blame__free(struct lock_blame *b)
{
	if (!b)
		return;
	MAP_EACH(struct lock_holder *h, &b->holders) {
		free(h->segments);
		free(h->ends);
		map__free(&h->active);
	}
	MAPS_FREE(&b->holders, &b->rows, &b->activities, &b->codes, &b->frequent_stacks);
	lock_waits__free(&b->waits);
	free(b->order);
	free(b->activity_order);
	free(b);
}

bool lock_blame__needs_activity(const struct lock_blame *b)
{
	return b->holders.n;
}

/* An interval of a holder, while its time is added to the holder's segments */
struct adding {
	struct lock_blame *b;
	struct lock_holder *h;
	u64 from, to;
	struct lock_activity_key key; /* without the row */
	struct lock_activity act;
};

/* Adds to the activity's time in a row. To subtract, ns is a negative number converted to u64. */
static int add_ns(struct adding *a, u32 row, u64 ns)
{
	struct lock_activity *sum;

	a->key.row = row;
	sum = map__get(&a->b->activities, &a->key);
	if (!sum)
		return -ENOMEM;
	sum->ns += ns;
	sum->cause = a->act.cause;
	sum->frame = a->act.frame;
	sum->stack = a->act.stack;
	return 0;
}

static int begin_segment(struct lock_holder *h)
{
	u32 *n = map__get(&h->active, &h->segments[h->n_begun++].row);

	if (!n)
		return -ENOMEM;
	++*n;
	return 0;
}

static void end_segment(struct lock_holder *h)
{
	const u32 *row = &h->segments[h->ends[h->n_ended++]].row;
	u32 *n = map__find(&h->active, row);

	if (n && !--*n)
		map__remove(&h->active, row);
}

/*
 * Adds an interval's time to all segments of the holder in it. Intervals arrive by time. The segments of a row that
 * last throughout are added at once: a lock may have thousands of waiters, and its holder millions of intervals.
 */
static int add_activity(struct adding *a)
{
	struct lock_holder *h = a->h;
	int err = 0;

	while (!err && h->n_begun < h->n && h->segments[h->n_begun].from <= a->from)
		err = begin_segment(h);
	while (!err && h->n_ended < h->n_begun && h->segments[h->ends[h->n_ended]].to <= a->from)
		end_segment(h);
	for (u32 i = 0; !err && i < h->active.n; i++)
		err = add_ns(a, *(const u32 *)map__key(&h->active, i),
			     *(const u32 *)map__value(&h->active, i) * (a->to - a->from));
	while (!err && h->n_begun < h->n && h->segments[h->n_begun].from < a->to) {
		err = add_ns(a, h->segments[h->n_begun].row, a->to - h->segments[h->n_begun].from);
		err = err ? err : begin_segment(h);
	}
	while (!err && h->n_ended < h->n_begun && h->segments[h->ends[h->n_ended]].to <= a->to) {
		const struct lock_segment *p = &h->segments[h->ends[h->n_ended]];

		err = add_ns(a, p->row, p->to - a->to);
		end_segment(h);
	}
	return err;
}

int lock_blame__interval(struct lock_blame *b, const struct activity_interval *i)
{
	struct lock_holder *h = map__find(&b->holders, &i->thread);
	/* a holder that waits for a CPU after its write to the disk was still held up by that */
	u32 reason = i->call ? i->call : i->reason;
	struct adding a = { b,
			    h,
			    i->from,
			    i->to,
			    { .reason = reason },
			    { .cause = i->call ? activity__cause(b->activity, reason) : i->cause } };
	const struct stack_frame *f;

	if (!h || i->state == ACTIVITY_UNKNOWN || i->from >= i->to)
		return 0;
	if (i->state != ACTIVITY_RUNNING) {
		a.act.stack = i->off_stack ? i->off_stack : i->stack;
		a.act.frame = lock_blame__code(b, a.act.stack);
	}
	f = stacks__frame(b->stacks, a.act.frame);
	a.key.code = f ? f->code : 0;
	a.key.line = f ? f->line : 0;
	return add_activity(&a);
}

static int on_samples(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), stack);
	struct sampling *s = arg;

	ROWS_EACH(v, rows) {
		struct held_sample sample = {
			.thread = { (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) },
			.time = (u64)view__s64(&v, f.time),
			.stack = (u32)view__s64(&v, stack),
		};

		if (map__find(&s->b->holders, &sample.thread) && !array__push(s->list, s->n, sample))
			return -ENOMEM;
	}
	return 0;
}

COMPARE_BY(by_time, struct held_sample, ASCENDING(time))

/*
 * Counts one sample of this code in each row that the holder has open. Until divide_running() turns the counts into
 * shares of the running time, they are stored as activities of cause ACTIVITY_CAUSES, whose ns are the count.
 */
static int add_sample(struct lock_blame *b, const struct held_sample *s)
{
	struct lock_activity act = { .cause = ACTIVITY_CAUSES,
				     .frame = lock_blame__code(b, s->stack),
				     .stack = s->stack };
	const struct stack_frame *f = stacks__frame(b->stacks, act.frame);
	struct lock_activity_key key = { .reason = ~0u, .code = f ? f->code : 0, .line = f ? f->line : 0 };
	struct adding a = { b, map__find(&b->holders, &s->thread), s->time, s->time + 1, key, act };

	return add_activity(&a);
}

static int read_samples(struct lock_blame *b)
{
	struct sampling s = { .b = b };
	int err = query__read_kind(b->q, "sample_cpu", on_samples, &s);

	if (s.n)
		qsort(s.list, s.n, sizeof(*s.list), by_time);
	for (u32 i = 0; i < b->holders.n; i++)
		rewind_sweep(map__value(&b->holders, i));
	for (u32 i = 0; !err && i < s.n; i++)
		err = add_sample(b, &s.list[i]);
	free(s.list);
	return err;
}

/*
 * Activities with the same group differ only in their place in the code. A wait for the disk may be recorded as that of
 * the disk, as one in fsync, or only as uninterruptible.
 */
static u32 group_of(const struct lock_activity_key *key, const struct lock_activity *act)
{
	bool is_disk = IS_ONE_OF(act->cause, ACTIVITY_DISK, ACTIVITY_FAULT, ACTIVITY_SYNC, ACTIVITY_UNINTERRUPTIBLE);

	return is_disk ? ACTIVITY_CAUSE_BASE + ACTIVITY_DISK : key->reason;
}

static int by_activity(const void *a, const void *b, void *arg)
{
	const struct lock_blame *l = arg;
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lock_activity_key *x = map__key(&l->activities, i), *y = map__key(&l->activities, k);
	const struct lock_activity *p = map__value(&l->activities, i), *q = map__value(&l->activities, k);
	u32 p_group = group_of(x, p), q_group = group_of(y, q);

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (p_group != q_group)
		return p_group < q_group ? -1 : 1;
	if (p->ns != q->ns)
		return p->ns > q->ns ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int order_activities(struct lock_blame *b)
{
	free(b->activity_order);
	b->activity_order = calloc((size_t)b->activities.n + 1, sizeof(*b->activity_order));
	b->n_activities = b->activity_order ? b->activities.n : 0;
	for (u32 i = 0; i < b->n_activities; i++)
		b->activity_order[i] = i;
	if (b->n_activities)
		qsort_r(b->activity_order, b->n_activities, sizeof(*b->activity_order), by_activity, b);
	return b->activity_order ? 0 : -ENOMEM;
}

/* Returns the index in activity_order of a row's first activity. */
static u32 first_activity(const struct lock_blame *b, u32 row)
{
	return SEARCH(b->n_activities, i,
		      ((const struct lock_activity_key *)map__key(&b->activities, b->activity_order[i]))->row < row);
}

static const struct lock_activity_key *activity_key(const struct lock_blame *b, u32 i)
{
	return map__key(&b->activities, b->activity_order[i]);
}

static struct lock_activity *activity_of(const struct lock_blame *b, u32 i)
{
	return map__value(&b->activities, b->activity_order[i]);
}

/* Divides a row's running time among the code in its samples, by their number. */
static int divide_running(struct lock_blame *b, u32 row)
{
	u32 from = first_activity(b, row), to = first_activity(b, row + 1), n = 0;
	struct lock_activity *running = NULL;
	u64 ns;

	for (u32 i = from; i < to; i++) {
		struct lock_activity *act = activity_of(b, i);

		n += act->cause == ACTIVITY_CAUSES ? (u32)act->ns : 0;
		running = act->cause == ACTIVITY_ON_CPU ? act : running;
	}
	if (!n || !running)
		return 0;
	ns = running->ns;
	running->ns = 0;
	for (u32 i = from; i < to; i++) {
		struct lock_activity *act = activity_of(b, i), *sum;
		struct lock_activity_key key = *activity_key(b, i);

		if (act->cause != ACTIVITY_CAUSES)
			continue;
		key.reason = ACTIVITY_CAUSE_BASE + ACTIVITY_ON_CPU;
		sum = map__get(&b->activities, &key);
		if (!sum)
			return -ENOMEM;
		sum->ns += saturate__u64((double)ns * (double)act->ns / n);
		sum->cause = ACTIVITY_ON_CPU;
		sum->frame = act->frame;
		sum->stack = act->stack;
	}
	return 0;
}

static int by_ns(const void *a, const void *b, void *arg)
{
	const struct lock_blame *l = arg;
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lock_row *x = map__value(&l->rows, i), *y = map__value(&l->rows, k);

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int order_rows(struct lock_blame *b)
{
	b->order = calloc((size_t)b->rows.n + 1, sizeof(*b->order));
	if (!b->order)
		return -ENOMEM;
	for (u32 i = 0; i < b->rows.n; i++) {
		struct lock_row *row = map__value(&b->rows, i);

		b->order[i] = i;
		row->unknown_ns = row->ns;
	}
	if (b->rows.n)
		qsort_r(b->order, b->rows.n, sizeof(*b->order), by_ns, b);
	MAP_EACH_ENTRY(const struct lock_activity *act, const struct lock_activity_key *key, &b->activities) {
		struct lock_row *row = map__value(&b->rows, key->row);

		if (act->cause != ACTIVITY_CAUSES)
			row->unknown_ns -= act->ns < row->unknown_ns ? act->ns : row->unknown_ns;
	}
	return 0;
}

int lock_blame__finish(struct lock_blame *b)
{
	int err = b->holders.n ? read_samples(b) : 0;

	if (!err)
		err = order_activities(b);
	for (u32 row = 0; !err && row < b->rows.n; row++)
		err = divide_running(b, row);
	if (!err)
		err = order_activities(b);
	return err ? err : order_rows(b);
}

u32 lock_blame__rows(const struct lock_blame *b)
{
	return b->rows.n;
}

const struct lock_row_key *lock_blame__key(const struct lock_blame *b, u32 i)
{
	return map__key(&b->rows, b->order[i]);
}

const struct lock_row *lock_blame__row(const struct lock_blame *b, u32 i)
{
	return map__value(&b->rows, b->order[i]);
}

/* Sums the activities of the group at *at, which then is the index after them. */
static struct lock_main_activity sum_group(const struct lock_blame *b, u32 *at, u32 to)
{
	u32 group = group_of(activity_key(b, *at), activity_of(b, *at));
	struct lock_main_activity sum = { 0 };

	for (; *at < to && group_of(activity_key(b, *at), activity_of(b, *at)) == group; ++*at) {
		const struct lock_activity *act = activity_of(b, *at);

		/* waits too short to have a stack are assumed to be in the code of the others */
		if (!sum.ns || (act->frame && !sum.frame)) {
			sum.reason = activity_key(b, *at)->reason;
			sum.frame = act->frame;
			sum.stack = act->stack;
			sum.cause = act->cause;
		}
		sum.ns += act->ns;
	}
	return sum;
}

struct lock_main_activity lock_blame__main_activity(const struct lock_blame *b, u32 i)
{
	u32 row = b->order[i], at = first_activity(b, row), to = first_activity(b, row + 1);
	struct lock_main_activity most = { 0 }, cpu = { 0 };

	while (at < to) {
		struct lock_main_activity sum = sum_group(b, &at, to);

		if (sum.cause == ACTIVITY_CPU)
			cpu = sum;
		else if (sum.cause != ACTIVITY_CAUSES && sum.ns > most.ns)
			most = sum;
	}
	/* how long it waits for a CPU depends on other programs, so an activity a third as long is named instead */
	if (cpu.ns > 3 * most.ns)
		most = cpu;
	most.percent = most.ns ? 100 * (double)most.ns / (double)lock_blame__row(b, i)->ns : 0;
	return most;
}

u32 lock_blame__number(const struct lock_blame *b, u32 id)
{
	return names__number(b->q->names, id);
}

u64 lock_blame__left_out(const struct lock_blame *b)
{
	return b->left_out + b->waits.left_out;
}
