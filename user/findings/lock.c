// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for locks, conditions, queues and other threads: which code held or ended them, and what it did meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "findings/classify.h"
#include "findings/waited_for.h"
#include "model/lock_kind.h"
#include "model/lock_text.h"
#include "output/table.h"
#include "util/array.h"
#include "util/path.h"
#include "util/search.h"

/* Rows of lock_blame, sorted by the process and code that waited */
struct row_order {
	const struct lock_blame *locks;
	u32 *order;
	u32 n;
};

static int compare(u32 pid, u32 code, const struct lock_row_key *key)
{
	if (pid != key->pid)
		return pid < key->pid ? -1 : 1;
	return code < key->waiter_code ? -1 : code > key->waiter_code;
}

static int by_waiter(const void *a, const void *b, void *arg)
{
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lock_row_key *x = lock_blame__key(arg, i);
	int order = compare(x->pid, x->waiter_code, lock_blame__key(arg, k));

	/* rows of the same code stay in lock_blame's order: the longest first */
	return order ? order : i < k ? -1 : i > k;
}

static int order_rows(struct row_order *o, const struct lock_blame *locks)
{
	u32 n = lock_blame__rows(locks);

	*o = (struct row_order){ locks, calloc((size_t)n + 1, sizeof(*o->order)), n };
	if (!o->order)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		o->order[i] = i;
	if (n)
		qsort_r(o->order, n, sizeof(*o->order), by_waiter, (void *)locks);
	return 0;
}

/* Sets [*from, *to) to the rows of the group's process and code; if the group has no code, to those of all code. */
static void rows_of(const struct row_order *o, const struct group *g, u32 *from, u32 *to)
{
	u32 last = g->code ? g->code : ~0u;

	*from = SEARCH(o->n, i, compare(g->pid, g->code, lock_blame__key(o->locks, o->order[i])) > 0);
	*to = SEARCH(o->n, i, compare(g->pid, last, lock_blame__key(o->locks, o->order[i])) >= 0);
}

/* The most important of a group's rows */
struct blamed {
	u32 row; /* the row with most time */
	u64 ns, all_ns; /* time of this row, and of all rows of the group */
};

static struct blamed blamed_of(const struct row_order *o, const struct group *g, bool is_mutex)
{
	struct blamed b = { 0 };
	u32 from, to;

	rows_of(o, g, &from, &to);
	for (u32 i = from; i < to; i++) {
		const struct lock_row_key *key = lock_blame__key(o->locks, o->order[i]);
		const struct lock_row *row = lock_blame__row(o->locks, o->order[i]);

		if ((key->kind == LOCK_KIND_MUTEX) != is_mutex)
			continue;
		b.all_ns += row->ns;
		/* if two rows have the same time, take the first one in lock_blame's order */
		if (!key->is_known || row->ns < b.ns || !row->ns || (row->ns == b.ns && o->order[i] > b.row))
			continue;
		b.ns = row->ns;
		b.row = o->order[i];
	}
	return b;
}

/* Returns whether `report locks` shows anything of the process. */
static bool has_rows(const struct finding_input *in, const struct row_order *o, const struct group *g)
{
	u32 from, to;

	rows_of(o, &(struct group){ .pid = g->pid }, &from, &to);
	return from < to || query__has_family(in->q, "lock");
}

/* Adds what the holder mostly did, and in which code. */
static void add_activity(const struct finding_input *in, u32 row, struct finding *f)
{
	struct lock_main_activity did = lock_blame__main_activity(in->locks, row);
	struct finding_code code = { 0 };
	char text[160];

	if (!*lock_text__mostly(in->activity, &did, text, sizeof(text)))
		return;
	finding_code__fill(&code, in->stacks, did.stack);
	finding_counterpart__set_activity(&f->counterpart, &code, text);
}

/*
 * Adds the thread that held the lock. If this thread waited for another lock, also adds the code at the end of the
 * chain of holders, because that code caused the wait.
 */
static void add_holder(const struct finding_input *in, const struct blamed *b, struct finding *f)
{
	const struct lock_row_key *key = lock_blame__key(in->locks, b->row);
	const struct lock_row *row = lock_blame__row(in->locks, b->row);
	struct finding_code last = { 0 };

	f->counterpart.pid = row->held_by.pid;
	f->counterpart.tid = row->held_by.tid;
	f->counterpart.percent = table__percent(b->ns, b->all_ns);
	finding_code__fill(&f->counterpart.code, in->stacks, row->holder);
	add_activity(in, b->row, f);
	if (key->is_cycle)
		snprintf(f->detail, sizeof(f->detail), "its holder waited for a lock of the waiter: a deadlock");
	if (key->is_cycle || row->last == row->holder || !row->last)
		return;
	finding_code__fill(&last, in->stacks, row->last);
	finding_code__write(&last, " held by ", "the holder waited for another lock", f->detail, sizeof(f->detail));
}

/*
 * Returns the kind of wait in which the group spent most time. The stacks show only that the threads waited for a lock;
 * but if the threads that release it are not those that took it, it is the signal of a queue or condition.
 */
static enum finding_kind kind_with_most_time(const struct row_order *o, const struct group *g)
{
	static const enum finding_kind kinds[LOCK_KINDS] = {
		[LOCK_KIND_CONDITION] = FINDING_CONDITION, [LOCK_KIND_EVENT] = FINDING_CONDITION,
		[LOCK_KIND_QUEUE] = FINDING_IDLE,	   [LOCK_KIND_SEMAPHORE] = FINDING_SEMAPHORE,
		[LOCK_KIND_BARRIER] = FINDING_BARRIER,	   [LOCK_KIND_RESULT] = FINDING_RESULT,
		[LOCK_KIND_JOIN] = FINDING_RESULT,
	};
	u32 most = LOCK_KIND_MUTEX, from, to;
	u64 ns[LOCK_KINDS] = { 0 };

	rows_of(o, g, &from, &to);
	for (u32 i = from; i < to; i++)
		ns[lock_blame__key(o->locks, o->order[i])->kind] += lock_blame__row(o->locks, o->order[i])->ns;
	for (u32 k = 0; k < LOCK_KINDS; k++)
		if (kinds[k] && ns[k] > ns[most])
			most = k;
	return kinds[most] ? kinds[most] : FINDING_LOCK;
}

/* Returns whether threads wait in this kind for something that other threads or processes produce. */
static bool waits_for_output(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_RESULT, FINDING_BACKWARD, FINDING_QUEUE, FINDING_LOADER, FINDING_BARRIER);
}

/* Returns whether the group mostly waited in sleeps of SQLite between its attempts to lock a database. */
static bool is_database_lock(const struct finding_input *in, const struct group *g)
{
	struct group_most stack = group__most(in, g, GROUP_STACK), reason = group__most(in, g, GROUP_REASON);

	return reason.value < ACTIVITY_CAUSE_BASE &&
	       activity__cause(in->activity, (u32)reason.value) == ACTIVITY_SLEEP &&
	       stack_parts__of(in->stacks, (u32)stack.value).retries_database;
}

/* Names a holder only if it caused this part of the waits. */
#define HOLDER_PART 10

/* Did other threads end the waits for half of their time or more? If not, timeouts did. */
static bool is_ended_by_threads(const struct finding_input *in, const struct group *g)
{
	u64 ended = 0;

	for (u32 i = 0; i < g->n; i++)
		if (profile__key(in->profile, g->cells[i])->caused_by.tid)
			ended += profile__cell(in->profile, g->cells[i])->ns;
	return 2 * ended >= g->ns;
}

/* The waits for a lock are idle if its holder had nothing to do for so many percent of their time. */
#define IDLE_HOLDER_PERCENT 75

/* Did the holder of the lock mostly wait for something to do, as the threads of a server that take turns to accept? */
static bool has_idle_holder(const struct finding_input *in, const struct blamed *b)
{
	struct lock_main_activity did = lock_blame__main_activity(in->locks, b->row);
	struct thread_key holder = lock_blame__row(in->locks, b->row)->last_held_by;
	u64 idle = 0, all = 0;

	if (did.cause != ACTIVITY_EVENTS || did.percent < IDLE_HOLDER_PERCENT)
		return false;
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		if (!thread_key__is_same(key->thread, holder) || cell->cause != ACTIVITY_EVENTS)
			continue;
		all += cell->ns;
		idle += cell->kind == FINDING_IDLE ? cell->ns : 0;
	}
	return 100 * idle >= IDLE_HOLDER_PERCENT * all;
}

/*
 * Do the threads wait for something to do? So they do if the holder of their lock does, if timeouts end their waits
 * for a condition, as in a heartbeat, and if they wait for most of the recording and no thread is known to delay them.
 */
static bool is_for_work(const struct finding_input *in, const struct group *g, const struct finding *f)
{
	struct group_most stack = group__most(in, g, GROUP_STACK);

	if (f->kind == FINDING_LOCK)
		return waited_for__is_idle(in, g);
	if (!IS_ONE_OF(f->kind, FINDING_CONDITION, FINDING_RESULT, FINDING_BACKWARD))
		return false;
	return (f->is_background && !f->counterpart.pid) ||
	       (f->kind == FINDING_CONDITION && in->profile->has_sched && !is_ended_by_threads(in, g) &&
		!stack_parts__of(in->stacks, (u32)stack.value).serves);
}

/* Rows of native code are those of the whole process, with all its conditions; names of functions are exact there. */
static bool is_native_lock(const struct finding_input *in, const struct group *g)
{
	struct group_most stack = group__most(in, g, GROUP_STACK);

	return !g->code && lock_kind__is_native_lock(in->stacks, (u32)stack.value);
}

/* Adds the package's function that waits for an object of its pool. */
static void add_pool(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct group_most stack = group__most(in, g, GROUP_STACK);
	const struct stack_frame *pool = stacks__frame(in->stacks, stack_parts__of(in->stacks, (u32)stack.value).pool);
	char text[224];

	if (!pool)
		return;
	snprintf(text, sizeof(text), "until a pool had an object for it: %.100s (%.60s)", pool->name,
		 path__file_name(pool->file));
	finding__add_detail(f, text);
}

static u32 threads_of(const struct finding_input *in, u32 pid)
{
	u32 n = 0;

	for (u32 i = 0; i < in->profile->threads.n; i++)
		n += ((const struct thread_key *)map__key(&in->profile->threads, i))->pid == pid;
	return n;
}

/*
 * A fork copies locks in the state that they have, and only the thread that forks: what other threads held then is
 * never released in the child. Python's locks do not name their owner.
 */
static void add_fork(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct thread_key waiter = profile__key(in->profile, g->cells[0])->thread;

	if (!lock_blame__is_private(in->locks, waiter))
		return;
	if (f->counterpart.pid && f->counterpart.pid != f->pid)
		finding__add_detail(f, "it was held when this process was forked, and can never be released here");
	else if (!f->counterpart.pid && threads_of(in, f->pid) == 1)
		finding__add_detail(
			f,
			"no other thread is here to release it: this one took it already, or it was held when the process was forked");
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	const struct row_order *rows = arg;
	struct group_most caused_by = group__most(in, g, GROUP_CAUSED_BY), lock = group__most(in, g, GROUP_OBJECT);
	u32 pid = (u32)(caused_by.value >> 32);
	struct blamed b;

	snprintf(f->report, sizeof(f->report), "locks");
	f->confidence = FINDING_ATTRIBUTED;
	if (is_database_lock(in, g)) {
		snprintf(f->report, sizeof(f->report), "offcpu");
		finding__add_detail(
			f, "another connection had the SQLite database locked, so SQLite slept and tried again");
		return 0;
	}
	if (f->kind == FINDING_LOCK && !is_native_lock(in, g))
		group__set_kind(in, g, f, kind_with_most_time(rows, g));
	/* rows of a mutex name its holder; a condition has none, and its rows name the thread that ended the wait */
	b = blamed_of(rows, g, f->kind == FINDING_LOCK);
	if (f->kind == FINDING_QUEUE)
		add_pool(in, g, f);
	if (HOLDER_PART * b.ns < b.all_ns)
		b.ns = 0;
	if (!has_rows(in, rows, g) || f->kind == FINDING_LOADER)
		snprintf(f->report, sizeof(f->report), "offcpu");
	/* a function identifies the lock better than an address, which changes from run to run */
	if (f->kind == FINDING_LOCK && !*f->code.function && lock.value)
		snprintf(f->object, sizeof(f->object), "0x%llx", lock.value);
	if (waits_for_output(f->kind) && waited_for__follow(in, g, f))
		finding__waits_for_known(f);
	else if (b.ns)
		add_holder(in, &b, f);
	else if (pid && pid != f->pid && waited_for__follow(in, g, f))
		/* holders of a lock that processes share wait for each other; the chain ends with the one that works */
		finding__waits_for_known(f);
	else if (pid && 4 * caused_by.ns >= f->lost_ns) {
		/* the thread that ended the wait did so by releasing the lock, so it was the holder until then */
		f->counterpart.pid = pid;
		f->counterpart.tid = (u32)caused_by.value;
		f->counterpart.percent = table__percent(caused_by.ns, f->lost_ns);
	}
	if (f->kind == FINDING_LOCK && g->n)
		add_fork(in, g, f);
	if (f->kind == FINDING_RESULT && !f->counterpart.pid)
		waited_for__add_worker(in, g, f);
	if (f->kind == FINDING_CONDITION)
		waited_for__add_activity(in, g, f);
	if (is_for_work(in, g, f) || (f->kind == FINDING_LOCK && b.ns && has_idle_holder(in, &b))) {
		*f->object = '\0';
		group__set_idle(in, g, f);
	}
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	static const enum finding_kind kinds[] = { FINDING_LOCK,   FINDING_SEMAPHORE, FINDING_CONDITION,
						   FINDING_RESULT, FINDING_BACKWARD,  FINDING_QUEUE,
						   FINDING_LOADER, FINDING_BARRIER };
	struct row_order rows;
	int err = order_rows(&rows, in->locks);

	for (size_t i = 0; !err && i < ARRAY_LEN(kinds); i++)
		err = groups__each_finding(in, kinds[i], out, complete, &rows);
	free(rows.order);
	return err;
}

FINDINGS(lock) = { .name = "lock", .decides_colours = true, .find = find };
