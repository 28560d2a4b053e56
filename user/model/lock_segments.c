// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cuts the waits for locks at the releases, and follows each segment to the thread at the end of its chain. */
#include <errno.h>
#include <string.h>

#include "model/lock_blame_private.h"
#include "model/vote.h"
#include "util/array.h"

struct user_key {
	u32 lock;
	struct thread_key thread;
	u32 releases; /* 0: the thread waits; 1: it releases */
};

/* A wait that is being cut */
struct cutting {
	struct lock_blame *b;
	const struct lock_waited *wait;
	u32 number; /* the wait's index */
	struct thread_key path[LOCK_CHAIN_MAX + 1]; /* the waiter and the holders that were followed */
	u32 depth;
	struct thread_key holder; /* the first holder of the chain */
	u32 holder_stack;
	bool is_cycle;
	/* called instead of adding segments, with the first holders alone */
	int (*fn)(struct thread_key holder, u32 stack, u64 from, u64 to, void *arg);
	void *arg;
};

u32 lock_blame__code(struct lock_blame *b, u32 stack)
{
	u32 before = b->codes.n, *code = stack ? map__get(&b->codes, &stack) : NULL;

	if (code && b->codes.n != before)
		*code = lock_kind__code(b->stacks, stack);
	return code ? *code : 0;
}

static void set_code(struct lock_blame *b, u32 frame, u32 *code, u32 *line)
{
	const struct stack_frame *f = stacks__frame(b->stacks, frame);

	*code = f ? f->code : 0;
	*line = f ? f->line : 0;
}

/* Returns the stack, or if it was not recorded, the most frequent one of this thread and lock. */
static u32 stack_of(const struct lock_blame *b, u32 lock, struct thread_key thread, bool releases, u32 stack)
{
	struct user_key key = { lock, thread, releases };
	const struct vote *v = stack ? NULL : map__find(&b->frequent_stacks, &key);

	return v ? v->id : stack;
}

/* Counts the wait in the row, once if it has several segments there. */
static int count(struct cutting *c, struct lock_row *row)
{
	struct row_waiter key = { row->number, c->wait->thread.pid, c->wait->thread.tid };
	struct lock_blame *b = c->b;
	u32 before = b->row_waiters.n, *last = b->last_waiter;

	if (!last || memcmp(&b->last_waiter_key, &key, sizeof(key))) {
		last = b->last_waiter = map__get(&b->row_waiters, &key);
		b->last_waiter_key = key;
	}
	if (!last)
		return -ENOMEM;
	row->waiters += b->row_waiters.n - before;
	if (*last != c->number + 1) {
		row->waits++;
		row->open += c->wait->open;
	}
	*last = c->number + 1;
	return 0;
}

static struct lock_row *row_of(struct cutting *c, struct thread_key last, u32 last_stack)
{
	struct lock_blame *b = c->b;
	const struct lock_key *lock = map__key(&b->waits.locks, c->wait->lock);
	struct lock_row_key key = {
		.address = c->wait->kind <= LOCK_KIND_MUTEX ? lock->address : 0,
		.pid = c->wait->thread.pid,
		.kind = c->wait->kind,
		.is_known = last.tid != 0,
		.is_cycle = c->is_cycle,
	};
	u32 waiter = lock_blame__code(b, stack_of(b, c->wait->lock, c->wait->thread, false, c->wait->stack));
	u32 holder = lock_blame__code(b, c->holder_stack), end = lock_blame__code(b, last_stack);
	u32 before = b->rows.n;
	struct lock_row *row;

	set_code(b, waiter, &key.waiter_code, &key.waiter_line);
	set_code(b, holder, &key.holder_code, &key.holder_line);
	set_code(b, end, &key.last_code, &key.last_line);
	if (b->last_row && !memcmp(&b->last_row_key, &key, sizeof(key)))
		return b->last_row;
	row = map__get(&b->rows, &key);
	if (row && b->rows.n != before)
		*row = (struct lock_row){ .waiter = waiter, .holder = holder, .last = end, .number = before };
	b->last_row = row;
	b->last_row_key = key;
	return row;
}

static int add_segment(struct cutting *c, struct thread_key last, u32 last_stack, u64 from, u64 to)
{
	struct lock_blame *b = c->b;
	struct lock_holder *h;
	struct lock_row *row;

	if (c->fn)
		return from < to ? c->fn(last, last_stack, from, to, c->arg) : 0;
	if (b->n_segments >= LOCK_SEGMENTS_MAX) {
		b->left_out += to - from;
		return 0;
	}
	b->n_segments++;
	row = row_of(c, last, last_stack);
	if (!row || count(c, row))
		return -ENOMEM;
	row->ns += to - from;
	if (to - from > row->longest) {
		row->longest = to - from;
		row->waiting = c->wait->thread;
		row->held_by = c->holder;
		row->last_held_by = last;
	}
	/* the holder's activity in this segment is needed, if the holder is known */
	if (!b->has_activity || c->wait->kind != LOCK_KIND_MUTEX || !last.tid || c->is_cycle || from >= to)
		return 0;
	h = map__get(&b->holders, &last);
	return h && array__push(h->segments, h->n, (struct lock_segment){ from, to, row->number }) ? 0 : -ENOMEM;
}

static int cut_wait(struct cutting *c, const struct lock_waited *w, u64 from, u64 to);

/* Attributes [from, to) to the holder; where the holder itself waited for a lock, to that lock's holder instead. */
static int follow(struct cutting *c, struct thread_key holder, u32 stack, u64 from, u64 to)
{
	const struct lock_waits *l = &c->b->waits;
	u32 i = lock_waits__of_thread(l, holder, from);
	int err = 0;

	if (c->fn)
		return add_segment(c, holder, stack, from, to);
	if (!c->depth) {
		c->holder = holder;
		c->holder_stack = stack;
	}
	for (u32 k = 0; k <= c->depth; k++)
		if (thread_key__is_same(c->path[k], holder)) {
			/* a wait that ended was not part of a deadlock */
			c->is_cycle = c->wait->open;
			err = add_segment(c, holder, stack, from, to);
			c->is_cycle = false;
			return err;
		}
	for (; !err && i < l->n_waits && thread_key__is_same(l->waits[i].thread, holder) && l->waits[i].from < to;
	     i++) {
		const struct lock_waited *w = &l->waits[i];
		u64 begin = w->from > from ? w->from : from, end = w->to < to ? w->to : to;

		if (w->kind != LOCK_KIND_MUTEX || c->depth + 1 >= LOCK_CHAIN_MAX || begin >= end)
			continue;
		if (from < begin)
			err = add_segment(c, holder, stack, from, begin);
		c->path[++c->depth] = holder;
		if (!err)
			err = cut_wait(c, w, begin, end);
		c->depth--;
		from = end;
	}
	return err || from >= to ? err : add_segment(c, holder, stack, from, to);
}

/*
 * Returns the thread that the lock names as its owner, by a tid of its pid namespace: one of the lock's users, which
 * may be of another process, else one of the waiter's process. A lock that no other process can release may also have
 * an owner in the process that this one was forked from: it held the lock then. Any other tid does not count, as the
 * process itself writes it.
 */
static struct thread_key owner_of(const struct names *names, const struct lock_waited *w, const struct lock_object *o)
{
	struct thread_key owner = { w->thread.pid, names__thread_of(names, w->thread.pid, w->owner) };
	const struct task *task = names__task(names, w->thread.pid, 0);

	for (u32 i = 0; i < o->n_users && i < ARRAY_LEN(o->users); i++)
		if (names__thread_of(names, o->users[i].pid, w->owner) == o->users[i].tid)
			owner = o->users[i];
	if (w->owner && !owner.tid && w->is_private && task)
		owner = (struct thread_key){ task->ppid, names__thread_of(names, task->ppid, w->owner) };
	return owner;
}

/* Attributes [from, to), the rest of the wait after its last recorded release. */
static int follow_rest(struct cutting *c, const struct lock_waited *w, u32 next, u64 from, u64 to)
{
	const struct lock_waits *l = &c->b->waits;
	const struct lock_object *o = lock_waits__lock(l, w->lock);
	const struct lock_release *r = next < o->first + o->n ? &l->releases[next] : NULL;
	const struct lock_release *before = next > o->first ? &l->releases[next - 1] : NULL;
	struct thread_key owner = owner_of(l->q->names, w, o);
	u32 again;

	/* the release ended a wait of the same run: threads waited until then, so its thread held the lock */
	if (r && !thread_key__is_same(r->thread, w->thread) && lock_waits__ended_by(l, r)->run == w->run)
		return follow(c, r->thread, stack_of(c->b, w->lock, r->thread, true, r->stack), from, to);
	if (before && before->time >= w->from &&
	    !thread_key__is_same(lock_waits__ended_by(l, before)->thread, w->thread)) {
		/* the woken thread holds the lock unless it waits again */
		owner = lock_waits__ended_by(l, before)->thread;
		again = lock_waits__of_thread(l, owner, before->time);
		if (again == l->n_waits || !thread_key__is_same(l->waits[again].thread, owner) ||
		    l->waits[again].lock != w->lock)
			return follow(c, owner, stack_of(c->b, w->lock, owner, true, 0), from, to);
		owner.tid = 0;
	}
	/* if two threads use the lock, it is the other one */
	if (!owner.tid && o->n_users == 2)
		owner = o->users[thread_key__is_same(o->users[0], w->thread)];
	if (owner.tid && !thread_key__is_same(owner, w->thread))
		return follow(c, owner, stack_of(c->b, w->lock, owner, true, 0), from, to);
	if (!c->depth) {
		c->holder = (struct thread_key){ 0 };
		c->holder_stack = 0;
	}
	return add_segment(c, (struct thread_key){ 0 }, 0, from, to);
}

/* Cuts [from, to) of the wait. */
static int cut_wait(struct cutting *c, const struct lock_waited *w, u64 from, u64 to)
{
	const struct lock_waits *l = &c->b->waits;
	const struct lock_object *o = lock_waits__lock(l, w->lock);
	u32 i = lock_waits__release(l, w->lock, from);
	int err = 0;

	for (; !err && from < to && i < o->first + o->n && c->b->n_segments < LOCK_SEGMENTS_MAX; i++) {
		const struct lock_release *r = &l->releases[i];
		u64 until = r->time < to ? r->time : to;

		/* follow_rest() decides whether a release after the wait's end counts */
		if (r->time > w->to || thread_key__is_same(r->thread, w->thread))
			break;
		err = follow(c, r->thread, stack_of(c->b, w->lock, r->thread, true, r->stack), from, until);
		from = until;
	}
	return err || from >= to ? err : follow_rest(c, w, i, from, to);
}

static int cut(struct lock_blame *b, u32 number)
{
	const struct query *q = b->q;
	const struct lock_waited *w = &b->waits.waits[number];
	const struct lock_release *r = w->release == LOCK_NONE ? NULL : &b->waits.releases[w->release];
	struct cutting c = { .b = b, .wait = w, .number = number, .path = { w->thread } };
	u64 from = w->from > q->from ? w->from : q->from, to = q->to && w->to > q->to ? q->to : w->to;

	if (from >= to || !trace_ids__have(&q->tids, w->thread.tid))
		return 0;
	if (b->n_segments >= LOCK_SEGMENTS_MAX) {
		b->left_out += to - from;
		return 0;
	}
	if (w->kind == LOCK_KIND_MUTEX)
		return cut_wait(&c, w, from, to);
	c.holder = r ? r->thread : (struct thread_key){ 0 };
	c.holder_stack = r ? r->stack : 0;
	return add_segment(&c, c.holder, c.holder_stack, from, to);
}

static int note_frequent_stack(struct lock_blame *b, u32 lock, struct thread_key thread, bool releases, u32 stack)
{
	struct user_key key = { lock, thread, releases };
	struct vote *v = stack ? map__get(&b->frequent_stacks, &key) : NULL;

	if (v)
		vote(v, stack, 1);
	return stack && !v ? -ENOMEM : 0;
}

int lock_segments__cut(struct lock_blame *b)
{
	const struct lock_waits *l = &b->waits;
	int err = 0;

	map__init(&b->row_waiters, sizeof(struct row_waiter), sizeof(u32));
	map__init(&b->frequent_stacks, sizeof(struct user_key), sizeof(struct vote));
	for (u32 i = 0; !err && i < l->n_waits; i++)
		err = note_frequent_stack(b, l->waits[i].lock, l->waits[i].thread, false, l->waits[i].stack);
	for (u32 i = 0; !err && i < l->n_releases; i++)
		err = note_frequent_stack(b, lock_waits__ended_by(l, &l->releases[i])->lock, l->releases[i].thread,
					  true, l->releases[i].stack);
	for (u32 i = 0; !err && i < l->n_waits; i++)
		err = cut(b, i);
	map__free(&b->row_waiters);
	return err;
}

int lock_blame__holders(const struct lock_blame *b, struct thread_key waiter, u64 from, u64 to,
			int (*fn)(struct thread_key holder, u32 stack, u64 from, u64 to, void *arg), void *arg)
{
	const struct lock_waits *l = &b->waits;
	/* with fn, nothing is added to b */
	struct cutting c = { .b = (struct lock_blame *)b, .path = { waiter }, .fn = fn, .arg = arg };
	int err = 0;

	for (u32 i = lock_waits__of_thread(l, waiter, from);
	     !err && i < l->n_waits && thread_key__is_same(l->waits[i].thread, waiter) && l->waits[i].from < to; i++) {
		const struct lock_waited *w = &l->waits[i];
		u64 begin = w->from > from ? w->from : from, end = w->to < to ? w->to : to;

		if (begin >= end)
			continue;
		if (from < begin)
			err = fn((struct thread_key){ 0 }, 0, from, begin, arg);
		if (!err)
			err = cut_wait(&c, w, begin, end);
		from = end;
	}
	return err || from >= to ? err : fn((struct thread_key){ 0 }, 0, from, to, arg);
}

bool lock_blame__is_private(const struct lock_blame *b, struct thread_key waiter)
{
	const struct lock_waits *l = &b->waits;
	bool is_private = false;

	for (u32 i = lock_waits__of_thread(l, waiter, 0);
	     i < l->n_waits && thread_key__is_same(l->waits[i].thread, waiter); i++)
		is_private = l->waits[i].open && l->waits[i].is_private;
	return is_private;
}
