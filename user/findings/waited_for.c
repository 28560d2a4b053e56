// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/waited_for.h"

#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/compute.h"
#include "findings/import.h"
#include "output/table.h"

#define HOPS_MAX 4

/* What one thread did, and which other thread ended most of its waits */
struct link {
	struct thread_key thread;
	u64 wall, ran; /* ns; ran: or was runnable */
	u64 idle; /* ns for which no thread made it wait */
	u64 ended_ns; /* of its waits: ended by `ended_by` */
	struct thread_key ended_by;
	enum finding_kind kind; /* of its longest wait that is not for another thread */
	u64 kind_ns;
	u32 stack; /* of that wait */
};

/*
 * What the thread did, where the wait alone says it: its verb. Empty for other waits, because the thread that ended
 * them did more.
 */
static const char *activity_of(enum finding_kind kind)
{
	static const char *const activities[FINDING_KINDS] = {
		[FINDING_DISK] = "waited for the disk",
		[FINDING_SLEEP] = "slept",
		[FINDING_LOCK] = "waited for a lock",
		[FINDING_GIL] = "waited for the GIL",
		[FINDING_FILE_LOCK] = "waited for a file lock",
		[FINDING_CALL] = "waited in a system call",
		[FINDING_PEER] = "waited for another process or machine",
		[FINDING_MEMORY] = "waited for the kernel to reclaim or compact memory",
		[FINDING_BLOCKED] = "waited uninterruptibly",
		[FINDING_LIBRARY] = "waited in a library",
		[FINDING_GPU_WAIT] = "waited for a GPU",
		[FINDING_NCCL] = "waited in NCCL",
	};

	return activities[kind] ? activities[kind] : "";
}

static void add_waker(struct map *wakers, struct link *l, struct thread_key by, u64 ns)
{
	u64 *sum = by.tid && !thread_key__is_same(by, l->thread) ? map__get(wakers, &by) : NULL;

	if (!sum)
		return;
	*sum += ns;
	if (*sum < l->ended_ns)
		return;
	l->ended_ns = *sum;
	l->ended_by = by;
}

struct kind_sum {
	u64 ns, longest;
	u32 stack; /* of the longest */
};

static void add_wait(struct map *kinds, struct link *l, u32 kind, const struct profile_key *key,
		     const struct profile_cell *cell)
{
	struct kind_sum *sum = map__get(kinds, &kind);

	if (!sum)
		return;
	sum->ns += cell->ns;
	if (cell->ns > sum->longest) {
		sum->longest = cell->ns;
		sum->stack = key->stack;
	}
	if (sum->ns < l->kind_ns)
		return;
	l->kind_ns = sum->ns;
	l->kind = kind;
	l->stack = sum->stack;
}

static bool is_lock(enum finding_kind kind)
{
	return kind == FINDING_LOCK || kind == FINDING_FILE_LOCK;
}

static bool is_one_of(struct thread_key thread, const struct thread_key *list, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (thread_key__is_same(thread, list[i]))
			return true;
	return false;
}

/*
 * Waits of the thread, or where it has hardly any, its idle times: a pool's thread is idle until a worker has a result.
 */
#define HARDLY_ANY 20

static void add_wakers(const struct profile *p, struct link *l, const struct thread_key *seen, u32 n_seen)
{
	u64 known = l->ran + l->idle;
	bool is_idle = known >= l->wall || HARDLY_ANY * (l->wall - known) < l->wall;
	struct map wakers;

	map__init(&wakers, sizeof(struct thread_key), sizeof(u64));
	for (u32 i = 0; i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);
		const struct profile_cell *cell = profile__cell(p, i);

		if (thread_key__is_same(key->thread, l->thread) && key->state == ACTIVITY_BLOCKED &&
		    (is_idle || cell->kind != FINDING_IDLE) && !is_one_of(key->by, seen, n_seen))
			add_waker(&wakers, l, key->by, cell->ns);
	}
	map__free(&wakers);
	l->idle = is_idle ? 0 : l->idle;
}

/* The kind of a wait. A background thread that sleeps now and then is idle by itself, but not if others wait for it. */
static enum finding_kind kind_of(const struct profile_cell *cell, bool is_waited_for)
{
	return is_waited_for && cell->kind == FINDING_IDLE && cell->cause == ACTIVITY_SLEEP ? FINDING_SLEEP :
											      cell->kind;
}

/*
 * seen: the threads before this one in the chain, which wait for it. Threads that wait for the same lock end each
 * other's waits: where this thread waits for a lock, the thread that ended its waits is one that was not seen.
 */
static struct link link_of(const struct finding_input *in, struct thread_key thread, const struct thread_key *seen,
			   u32 n_seen)
{
	const struct profile *p = in->profile;
	const struct profile_thread *t = map__find(&p->threads, &thread);
	struct link l = { .thread = thread };
	struct map kinds;

	if (!t)
		return l;
	l.wall = t->wall;
	l.ran = t->run + t->runnable;
	l.idle = t->idle;
	map__init(&kinds, sizeof(u32), sizeof(struct kind_sum));
	for (u32 i = 0; i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);
		const struct profile_cell *cell = profile__cell(p, i);

		enum finding_kind kind = kind_of(cell, n_seen);

		if (thread_key__is_same(key->thread, thread) && key->state == ACTIVITY_BLOCKED && *activity_of(kind))
			add_wait(&kinds, &l, kind, key, cell);
	}
	map__free(&kinds);
	add_wakers(p, &l, seen, is_lock(l.kind) ? n_seen : 0);
	return l;
}

/* A part of the waits that is large enough to name who ended them */
#define ENDED_PART 5

/* A thread does something by itself if that takes this part of its time; else it passes on what others do. */
#define OWN_PART 4

static bool does_something(const struct link *l)
{
	bool is_for_others = l->kind == FINDING_PEER || l->kind == FINDING_GIL || l->kind == FINDING_LOCK ||
			     l->kind == FINDING_FILE_LOCK;

	return OWN_PART * l->ran >= l->wall || (OWN_PART * l->kind_ns >= l->wall && !is_for_others) ||
	       (OWN_PART * l->kind_ns >= l->wall && (is_lock(l->kind) ? ENDED_PART : 2) * l->ended_ns < l->kind_ns);
}

static void describe(const struct finding_input *in, const struct link *l, struct finding *f)
{
	struct finding_counterpart *by = &f->by;
	struct imported imported;
	struct computed c;

	memset(by, 0, sizeof(*by));
	by->pid = l->thread.pid;
	by->tid = l->thread.tid;
	by->is_end_of_chain = true;
	if (l->ran >= l->kind_ns) {
		computed__of(&c, in, l->thread.pid, 0);
		if (c.samples)
			finding_code__fill(&by->code, in->stacks, c.stack);
		snprintf(by->activity, sizeof(by->activity), "%s",
			 computed__passes_data(&c) ? "pickled and copied data for other processes" : "computed");
		if (imported__of(&imported, in, l->thread.pid) || 2 * imported.sampled_ns < imported.all_ns ||
		    !imported.sampled_ns)
			return;
		finding_code__fill(&by->code, in->stacks, imported.stack);
		snprintf(by->activity, sizeof(by->activity), "imported modules");
		return;
	}
	by->is_pause = l->kind == FINDING_SLEEP && !stack_parts__of(in->stacks, l->stack).serves;
	finding_code__fill(&by->code, in->stacks, l->stack);
	snprintf(by->activity, sizeof(by->activity), "%s", activity_of(l->kind));
}

bool waited_for__follow(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct group_most by = group__most(in, g, GROUP_BY);
	struct thread_key next = { (u32)(by.value >> 32), (u32)by.value }, seen[HOPS_MAX + 2];
	struct link l;

	if (!g->n || !next.pid || ENDED_PART * by.ns < g->ns - g->delay_ns)
		return false;
	seen[0] = profile__key(in->profile, g->cells[0])->thread;
	for (u32 hop = 1; hop <= HOPS_MAX; hop++) {
		l = link_of(in, next, seen, hop);
		if (!l.wall)
			return false;
		if (does_something(&l))
			break;
		seen[hop] = next;
		next = l.ended_by;
		if (!next.pid || ENDED_PART * l.ended_ns + l.ran + l.idle < l.wall)
			return false;
		if (is_one_of(next, seen, hop + 1))
			return false;
	}
	if (!does_something(&l))
		return false;
	describe(in, &l, f);
	f->confidence = FINDING_ATTRIBUTED;
	return true;
}

bool waited_for__is_idle(const struct finding_input *in, const struct group *g)
{
	struct group_most by = group__most(in, g, GROUP_BY);
	struct thread_key thread = { (u32)(by.value >> 32), (u32)by.value };
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);
	struct link l;

	if (thread.pid != g->pid || !t || 2 * by.ns < g->ns - g->delay_ns)
		return false;
	l = link_of(in, thread, NULL, 0);
	return 4 * (t->idle + (l.kind == FINDING_SLEEP ? l.kind_ns : 0)) >= 3 * t->wall;
}
