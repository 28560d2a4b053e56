// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The order of waits and releases, and searches in it. */
#include <errno.h>
#include <stdlib.h>

#include "model/lock_waits_private.h"
#include "util/group_sort.h"
#include "util/search.h"

/* The waits of a thread, and where the last search ended: searches of one thread are mostly in order of time. */
struct thread_range {
	u32 first, n;
	u32 at;
	u32 rank; /* of the thread, while waits are sorted */
};

void lock_waits__init(struct lock_waits *l)
{
	map__init(&l->threads, sizeof(struct thread_key), sizeof(struct thread_range));
}

static int by_start(const void *a, const void *b, void *arg)
{
	const struct lock_waits *l = arg;
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lock_waited *x = &l->waits[i], *y = &l->waits[k];

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int by_time(const void *a, const void *b, void *arg)
{
	const struct lock_waits *l = arg;
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lock_release *x = &l->releases[i], *y = &l->releases[k];

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int by_key(const void *a, const void *b, void *arg)
{
	const struct map *threads = arg;
	const struct thread_key *x = map__key(threads, *(const u32 *)a), *y = map__key(threads, *(const u32 *)b);

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Ranks threads by pid and tid, and sets where the waits of each begin. 0 or -ENOMEM. */
static int rank_threads(struct map *threads)
{
	u32 *order = calloc((size_t)threads->n + 1, sizeof(*order)), first = 0;

	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < threads->n; i++)
		order[i] = i;
	if (threads->n)
		qsort_r(order, threads->n, sizeof(*order), by_key, threads);
	for (u32 i = 0; i < threads->n; i++) {
		struct thread_range *t = map__value(threads, order[i]);

		t->rank = i;
		t->first = first;
		first += t->n;
	}
	free(order);
	return 0;
}

/* Sets the thread's number of each wait, and counts the waits of each thread. 0 or -ENOMEM. */
static int group_waits(struct lock_waits *l, u32 *groups)
{
	int err;

	map__free(&l->threads);
	for (u32 i = 0; i < l->n_waits; i++) {
		struct thread_range *t = map__get(&l->threads, &l->waits[i].thread);

		if (!t)
			return -ENOMEM;
		t->n++;
	}
	err = rank_threads(&l->threads);
	for (u32 i = 0; !err && i < l->n_waits; i++)
		groups[i] = ((struct thread_range *)map__find(&l->threads, &l->waits[i].thread))->rank;
	return err;
}

int lock_waits__sort(struct lock_waits *l)
{
	u32 *groups = calloc((size_t)l->n_waits + 1, sizeof(*groups)), *order = NULL;
	int err = groups ? group_waits(l, groups) : -ENOMEM;

	if (!err)
		order = group_sort__order(groups, l->n_waits, l->threads.n, by_start, l);
	free(groups);
	if (!order)
		return -ENOMEM;
	group_sort__move(l->waits, sizeof(*l->waits), order, l->n_waits);
	free(order);
	for (u32 i = 0; i < l->n_waits; i++)
		if (l->waits[i].release != LOCK_NONE)
			l->releases[l->waits[i].release].wait = i;
	return 0;
}

int lock_waits__sort_releases(struct lock_waits *l)
{
	u32 *groups = calloc((size_t)l->n_releases + 1, sizeof(*groups)), *order = NULL;

	for (u32 i = 0; groups && i < l->n_releases; i++)
		groups[i] = lock_waits__ended_by(l, &l->releases[i])->lock;
	if (groups)
		order = group_sort__order(groups, l->n_releases, l->locks.n, by_time, l);
	free(groups);
	if (!order)
		return -ENOMEM;
	group_sort__move(l->releases, sizeof(*l->releases), order, l->n_releases);
	free(order);
	for (u32 i = 0; i < l->locks.n; i++)
		((struct lock_object *)map__value(&l->locks, i))->first = 0;
	for (u32 i = 0; i < l->n_releases; i++) {
		struct lock_waited *w = &l->waits[l->releases[i].wait];
		struct lock_object *o = map__value(&l->locks, w->lock);

		w->release = i;
		o->first = o->n++ ? o->first : i;
	}
	return 0;
}

/* Gaps between waits up to this long are those of a thread that waits repeatedly with a timeout. */
#define RUN_GAP 5000000 /* ns */

int lock_waits__number_runs(struct lock_waits *l)
{
	u32 *groups = calloc((size_t)l->n_waits + 1, sizeof(*groups)), *order = NULL, run = 0;
	u64 until = 0;

	for (u32 i = 0; groups && i < l->n_waits; i++)
		groups[i] = l->waits[i].lock;
	if (groups)
		order = group_sort__order(groups, l->n_waits, l->locks.n, by_start, l);
	free(groups);
	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < l->n_waits; i++) {
		struct lock_waited *w = &l->waits[order[i]];

		if (!i || w->lock != l->waits[order[i - 1]].lock || w->from > until + RUN_GAP) {
			run++;
			until = 0;
		}
		until = w->to > until ? w->to : until;
		w->run = run;
	}
	free(order);
	return 0;
}

/* A search looks at so many waits behind the last one that it found before it bisects. */
#define SEARCH_STEPS 4

u32 lock_waits__of_thread(const struct lock_waits *l, struct thread_key thread, u64 time)
{
	struct thread_range *t = map__find(&l->threads, &thread);
	const struct lock_waited *w;
	u32 at;

	if (!t)
		return l->n_waits;
	w = l->waits + t->first;
	at = t->at < t->n ? t->at : 0;
	if (at && w[at - 1].to > time)
		at = 0;
	for (u32 steps = 0; at < t->n && w[at].to <= time; at++)
		if (steps++ == SEARCH_STEPS) {
			at = SEARCH(t->n, i, w[i].to <= time);
			break;
		}
	t->at = at;
	return t->first + at;
}

u32 lock_waits__release(const struct lock_waits *l, u32 lock, u64 time)
{
	const struct lock_object *o = lock_waits__lock(l, lock);
	const struct lock_release *r = l->releases + o->first;

	return o->first + SEARCH(o->n, i, r[i].time <= time);
}
