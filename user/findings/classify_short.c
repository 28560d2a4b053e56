// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/classify_short.h"

#include <errno.h>

#include "findings/stopped.h"
#include "util/map.h"

/* Which waits: those of one thread or, if there is an object, those of a process's threads for this object */
struct usual_key {
	struct thread_key thread; /* tid 0: all */
	u64 object;
};

/* Waits with a stack, by kind and code */
struct similar_key {
	struct usual_key waits;
	u32 kind, code;
};

/* The most frequent kind and code of waits with a stack */
struct usual {
	u64 times, total;
	u32 kind, code;
};

static bool is_short(const struct profile_key *key, const struct profile_cell *cell)
{
	return key->state == ACTIVITY_BLOCKED && !key->stack &&
	       (cell->kind == FINDING_ASLEEP || cell->kind == FINDING_BLOCKED);
}

/* Is it a wait for a futex of which only the thread that ended it has a stack? */
static bool is_woken(const struct profile_key *key, const struct profile_cell *cell)
{
	return key->state == ACTIVITY_BLOCKED && !key->stack && key->object && cell->cause == ACTIVITY_FUTEX;
}

static int add_similar(struct map *similar, const struct usual_key *of, const struct profile_cell *cell)
{
	struct similar_key key = { *of, cell->kind, cell->code };
	u64 *times = map__get(similar, &key);

	if (!times)
		return -ENOMEM;
	*times += cell->times;
	return 0;
}

/* Counts waits and does not sum their ns, because the waits to be classified are short and many. */
static int count_similar(const struct finding_input *in, struct map *similar)
{
	int err = 0;

	for (u32 i = 0; i < in->profile->cells.n && !err; i++) {
		const struct profile_key *key = profile__key(in->profile, i);
		const struct profile_cell *cell = profile__cell(in->profile, i);
		struct usual_key thread = { key->thread, 0 }, object = { { key->thread.pid, 0 }, key->object };

		/* all waits for the GIL and all stops are recorded, so a wait without a stack is none of them */
		if (key->state != ACTIVITY_BLOCKED || !key->stack || cell->kind == FINDING_GIL ||
		    stopped__is_kind(cell->kind))
			continue;
		err = add_similar(similar, &thread, cell);
		if (!err && cell->cause == ACTIVITY_FUTEX && key->object)
			err = add_similar(similar, &object, cell);
	}
	return err;
}

static int find_usual(const struct map *similar, struct map *waits)
{
	for (u32 i = 0; i < similar->n; i++) {
		const struct similar_key *key = map__key(similar, i);
		u64 times = *(const u64 *)map__value(similar, i);
		struct usual *u = map__get(waits, &key->waits);

		if (!u)
			return -ENOMEM;
		u->total += times;
		if (times <= u->times)
			continue;
		u->times = times;
		u->kind = key->kind;
		u->code = key->code;
	}
	return 0;
}

static int count_usual(const struct finding_input *in, struct map *waits)
{
	struct map similar;
	int err;

	map__init(&similar, sizeof(struct similar_key), sizeof(u64));
	err = count_similar(in, &similar);
	if (!err)
		err = find_usual(&similar, waits);
	map__free(&similar);
	return err;
}

int classify_short__waits(const struct finding_input *in)
{
	struct map waits;
	int err;

	map__init(&waits, sizeof(struct usual_key), sizeof(struct usual));
	err = count_usual(in, &waits);
	for (u32 i = 0; !err && i < in->profile->cells.n; i++) {
		const struct profile_key *key = profile__key(in->profile, i);
		struct profile_cell *cell = profile__cell(in->profile, i);
		struct usual_key of = { key->thread, 0 };
		const struct usual *u;

		if (is_woken(key, cell))
			of = (struct usual_key){ { key->thread.pid, 0 }, key->object };
		else if (!is_short(key, cell))
			continue;
		u = map__find(&waits, &of);
		if (!u || 2 * u->times <= u->total || (cell->kind == FINDING_BLOCKED && u->kind != FINDING_DISK))
			continue;
		/* a sleep is as long as the code requests, so sleeps with a stack do not represent shorter ones */
		if (u->kind == FINDING_SLEEP)
			continue;
		cell->kind = u->kind;
		cell->code = u->code;
	}
	map__free(&waits);
	return err;
}
