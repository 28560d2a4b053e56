// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "model/lock_waits_private.h"
#include "model/view.h"
#include "util/array.h"
#include "probes/sample/sample.h"

/* Identifies a wait by the moment at which its thread left the CPU, which sample_wake and sample_off both have. */
struct off_key {
	u64 since;
	u32 pid, tid;
};

struct loading {
	struct lock_waits *l;
	struct map offs; /* struct off_key -> u32 number of the wait plus 1 */
	u32 sampled; /* number of waits from sample_wake and sample_off, sorted by thread and time */
	const struct schema_field *lock, *owner, *woken, *waker_pid, *waker_tid, *result, *futex, *reason, *stack;
	const struct schema_field *lock_owner, *private, *since, *woken_pid, *woken_tid, *how, *value;
	struct common_fields common;
};

static u64 get(const struct view *v, const struct schema_field *f)
{
	return (u64)view__s64(v, f);
}

/* Returns the lock's number; LOCK_NONE: no memory. */
static u32 lock_number(struct lock_waits *l, u32 pid, u64 address)
{
	struct lock_key key = { address, pid, 0 };
	u32 before = l->locks.n;
	struct lock_object *o = map__get(&l->locks, &key);

	if (!o)
		return LOCK_NONE;
	/* `first` is the number until the releases are sorted */
	if (l->locks.n != before)
		o->first = before;
	return o->first;
}

/* Returns whether there is room for another wait; if not, counts its time. */
static bool has_room(struct lock_waits *l, const struct lock_waited *w)
{
	if (l->n_waits < LOCK_WAITS_MAX)
		return true;
	if (trace_ids__have(&l->q->tids, w->thread.tid))
		l->left_out += query__inside(l->q, w->from, w->to);
	return false;
}

static struct loading fields_of(struct loading in, const struct schema_event *e)
{
	in.common = common_fields__of(e);
	in.lock = schema_event__field(e, "lock");
	in.owner = schema_event__field(e, "owner");
	in.lock_owner = schema_event__field(e, "lock_owner");
	in.private = schema_event__field(e, "private");
	in.woken = schema_event__field(e, "woken");
	in.waker_pid = schema_event__field(e, "waker_pid");
	in.waker_tid = schema_event__field(e, "waker_tid");
	in.result = schema_event__field(e, "result");
	in.futex = schema_event__field(e, "futex");
	in.reason = schema_event__field(e, "reason");
	in.stack = schema_event__field(e, "stack");
	in.since = schema_event__field(e, "since");
	in.woken_pid = schema_event__field(e, "woken_pid");
	in.woken_tid = schema_event__field(e, "woken_tid");
	in.how = schema_event__field(e, "how");
	in.value = schema_event__field(e, "value");
	return in;
}

/* The futex value with which threads wait for the locks of glibc, musl, Rust and Go. */
#define FUTEX_CONTENDED 2

static int on_wake(struct loading *in, const struct view *v)
{
	struct lock_waits *l = in->l;
	struct lock_waited w = { .thread = { (u32)get(v, in->woken_pid), (u32)get(v, in->woken_tid) },
				 .from = get(v, in->since),
				 .to = get(v, in->common.time),
				 .release = l->n_releases,
				 .by_exit = get(v, in->how) == SAMPLE_WAKE_EXIT };
	struct lock_release r = { .time = w.to,
				  .thread = { (u32)get(v, in->common.pid), (u32)get(v, in->common.tid) },
				  .stack = (u32)get(v, in->stack),
				  .wait = l->n_waits };
	struct off_key key = { w.from, w.thread.pid, w.thread.tid };
	u32 *known;

	if (w.from >= w.to || !has_room(l, &w))
		return 0;
	w.lock = lock_number(l, w.thread.pid, get(v, in->lock));
	known = map__get(&in->offs, &key);
	if (!known || w.lock == LOCK_NONE || !array__push(l->waits, l->n_waits, w) ||
	    !array__push(l->releases, l->n_releases, r))
		return -ENOMEM;
	*known = l->n_waits;
	((struct lock_object *)map__value(&l->locks, w.lock))->is_three_state = get(v, in->value) == FUTEX_CONTENDED;
	return 0;
}

static int on_off(struct loading *in, const struct view *v)
{
	struct lock_waits *l = in->l;
	struct lock_waited w = { .thread = { (u32)get(v, in->common.pid), (u32)get(v, in->common.tid) },
				 .from = get(v, in->common.start),
				 .to = get(v, in->common.time),
				 .stack = (u32)get(v, in->stack),
				 .owner = (u32)get(v, in->lock_owner),
				 .is_private = get(v, in->private),
				 .release = LOCK_NONE,
				 .open = get(v, in->common.flags) & EVENT_OPEN };
	struct off_key key = { w.from, w.thread.pid, w.thread.tid };
	const u32 *known = map__find(&in->offs, &key);

	if (known) {
		l->waits[*known - 1].stack = w.stack;
		return 0;
	}
	if (get(v, in->reason) != SAMPLE_LOCK || !get(v, in->futex) || w.from >= w.to || !has_room(l, &w))
		return 0;
	w.lock = lock_number(l, w.thread.pid, get(v, in->lock ? in->lock : in->futex));
	return w.lock == LOCK_NONE || !array__push(l->waits, l->n_waits, w) ? -ENOMEM : 0;
}

static int add_recorded(struct loading *in, const struct view *v, struct lock_waited *w)
{
	struct lock_waits *l = in->l;
	struct lock_release r = { .time = get(v, in->woken),
				  .thread = { (u32)get(v, in->waker_pid), (u32)get(v, in->waker_tid) },
				  .wait = l->n_waits };

	if (!has_room(l, w))
		return 0;
	w->lock = lock_number(l, w->thread.pid, get(v, in->lock));
	if (r.thread.tid && r.time > w->from) {
		w->release = l->n_releases;
		w->to = r.time;
		if (!array__push(l->releases, l->n_releases, r))
			return -ENOMEM;
	}
	return w->lock == LOCK_NONE || !array__push(l->waits, l->n_waits, *w) ? -ENOMEM : 0;
}

/* Adds the owner to the sampled wait at this time. A wait that was too short for sampling is added. */
static int on_recorded(struct loading *in, const struct view *v)
{
	struct lock_waits *l = in->l;
	struct lock_waited w = { .thread = { (u32)get(v, in->common.pid), (u32)get(v, in->common.tid) },
				 .from = get(v, in->common.start),
				 .to = get(v, in->common.time),
				 .owner = (u32)get(v, in->owner),
				 .release = LOCK_NONE,
				 .open = get(v, in->common.flags) & EVENT_OPEN };
	u32 i;

	if (view__s64(v, in->result) == -EAGAIN || w.from >= w.to ||
	    lock_futexes__is_gil(l->futexes, w.thread.pid, get(v, in->lock)))
		return 0;
	i = lock_waits__of_thread(l, w.thread, w.from);
	if (i >= in->sampled || !thread_key__is_same(l->waits[i].thread, w.thread) || l->waits[i].from >= w.to)
		return add_recorded(in, v, &w);
	if (w.owner)
		l->waits[i].owner = w.owner;
	return 0;
}

static int each(const struct rows *rows, struct loading *in, int (*fn)(struct loading *in, const struct view *v))
{
	int err = 0;

	*in = fields_of(*in, rows__event(rows));
	ROWS_WHILE(!err, v, rows)
		err = fn(in, &v);
	return err;
}

static int on_wakes(const struct rows *rows, void *arg)
{
	return each(rows, arg, on_wake);
}

static int on_offs(const struct rows *rows, void *arg)
{
	return each(rows, arg, on_off);
}

static int on_lock_waits(const struct rows *rows, void *arg)
{
	return each(rows, arg, on_recorded);
}

static void note_user(struct lock_waits *l, u32 lock, struct thread_key user)
{
	struct lock_object *o = map__value(&l->locks, lock);

	for (u32 i = 0; i < o->n_users && i < ARRAY_LEN(o->users); i++)
		if (thread_key__is_same(o->users[i], user))
			return;
	if (o->n_users < ARRAY_LEN(o->users))
		o->users[o->n_users] = user;
	o->n_users += o->n_users <= ARRAY_LEN(o->users);
}

static void note_users(struct lock_waits *l)
{
	for (u32 i = 0; i < l->n_waits; i++)
		note_user(l, l->waits[i].lock, l->waits[i].thread);
	for (u32 i = 0; i < l->n_releases; i++)
		note_user(l, lock_waits__ended_by(l, &l->releases[i])->lock, l->releases[i].thread);
}

/*
 * Whether it is used as a lock: a thread that gets a lock releases it. So the next waiter is woken by the thread that
 * was woken before, unless that thread waits again because a third one was faster. In contrast, a thread that takes an
 * item of a queue wakes no other.
 */
static bool is_used_as_lock(const struct lock_waits *l, u32 lock, bool *is_known)
{
	const struct lock_object *o = lock_waits__lock(l, lock);
	u32 passed_on = 0, not_passed_on = 0;

	for (u32 i = o->first; i + 1 < o->first + o->n; i++) {
		const struct lock_release *r = &l->releases[i], *next = r + 1;
		struct thread_key woken = lock_waits__ended_by(l, r)->thread;
		u32 again;

		if (lock_waits__ended_by(l, next)->from >= r->time)
			continue;
		if (thread_key__is_same(next->thread, woken)) {
			passed_on++;
			continue;
		}
		again = lock_waits__of_thread(l, woken, r->time);
		not_passed_on += again == l->n_waits || !thread_key__is_same(l->waits[again].thread, woken) ||
				 l->waits[again].lock != lock || l->waits[again].from >= next->time;
	}
	*is_known = passed_on || not_passed_on;
	return passed_on > not_passed_on;
}

static enum lock_kind most_frequent_kind(const u64 ns[LOCK_KINDS])
{
	enum lock_kind most = LOCK_KIND_UNKNOWN;

	for (u32 k = LOCK_KIND_UNKNOWN + 1; k < LOCK_KINDS; k++)
		if (ns[k] > (most ? ns[most] : 0))
			most = k;
	return most;
}

/* Names of functions determine the kind. Where Python code waits for a bare lock, the usage of the lock decides. */
static void set_kind(struct lock_waits *l, u32 lock, enum lock_kind most, bool has_owner)
{
	struct lock_object *o = map__value(&l->locks, lock);
	const struct lock_key *key = map__key(&l->locks, lock);
	bool is_known, is_lock = is_used_as_lock(l, lock, &is_known);

	o->kind = most;
	if (most == LOCK_KIND_MUTEX && is_known && !is_lock && !o->is_native)
		o->kind = LOCK_KIND_CONDITION;
	if (most != LOCK_KIND_UNKNOWN && most != LOCK_KIND_SEMAPHORE)
		return;
	if (has_owner || o->is_three_state || (is_known && is_lock) ||
	    lock_futexes__has(l->futexes, key->pid, key->address))
		o->kind = LOCK_KIND_MUTEX;
}

static int set_kinds(struct lock_waits *l)
{
	u64(*ns)[LOCK_KINDS] = calloc((size_t)l->locks.n + 1, sizeof(*ns));
	bool *has_owner = calloc((size_t)l->locks.n + 1, sizeof(*has_owner));
	struct lock_waited *w;

	for (u32 i = 0; ns && has_owner && i < l->n_waits; i++) {
		w = &l->waits[i];
		w->kind = (u8)lock_kind__of_stack(l->stacks, w->stack);
		ns[w->lock][w->kind] += w->to - w->from;
		if (w->kind == LOCK_KIND_MUTEX && lock_kind__is_native_lock(l->stacks, w->stack))
			((struct lock_object *)map__value(&l->locks, w->lock))->is_native = true;
		has_owner[w->lock] = has_owner[w->lock] || w->owner;
		/* decides only for this wait: at another time the memory may contain another kind of lock */
		if (w->by_exit)
			w->kind = LOCK_KIND_JOIN;
	}
	for (u32 i = 0; ns && has_owner && i < l->locks.n; i++)
		set_kind(l, i, most_frequent_kind(ns[i]), has_owner[i]);
	for (u32 i = 0; i < l->n_waits; i++) {
		w = &l->waits[i];
		if (w->kind <= LOCK_KIND_MUTEX || w->kind == LOCK_KIND_SEMAPHORE)
			w->kind = (u8)lock_waits__lock(l, w->lock)->kind;
	}
	free(ns);
	free(has_owner);
	return ns && has_owner ? 0 : -ENOMEM;
}

/*
 * Waits and releases are also read for this long before and after the selected time. Releases that are further away
 * matter only to waits that are longer than this.
 */
#define MARGIN 60000000000ull /* ns */

int lock_waits__load(struct lock_waits *l, const struct query *q, const struct stacks *stacks,
		     const struct lock_futexes *futexes)
{
	struct loading in = { .l = l };
	/* the release may come after the selected time, and from a thread that is not selected */
	struct query all = *q;
	int err;

	*l = (struct lock_waits){ .q = q, .stacks = stacks, .futexes = futexes };
	map__init(&l->locks, sizeof(struct lock_key), sizeof(struct lock_object));
	lock_waits__init(l);
	map__init(&in.offs, sizeof(struct off_key), sizeof(u32));
	all.from = q->from > MARGIN ? q->from - MARGIN : 0;
	all.to = q->to ? q->to + MARGIN : 0;
	all.tids.n = 0;
	err = query__read_kind(&all, "sample_wake", on_wakes, &in);
	if (!err)
		err = query__read_kind(&all, "sample_off", on_offs, &in);
	map__free(&in.offs);
	if (!err)
		err = lock_waits__sort(l);
	in.sampled = l->n_waits;
	if (!err)
		err = query__read_kind(&all, "lock_wait", on_lock_waits, &in);
	if (!err && l->n_waits > in.sampled)
		err = lock_waits__sort(l);
	if (!err)
		err = lock_waits__sort_releases(l);
	if (!err)
		err = lock_waits__number_runs(l);
	if (err)
		return err;
	note_users(l);
	return set_kinds(l);
}

void lock_waits__free(struct lock_waits *l)
{
	MAPS_FREE(&l->locks, &l->threads);
	free(l->waits);
	free(l->releases);
}
