// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/classify_semaphore.h"

#include <errno.h>
#include <string.h>

#include "util/map.h"

static bool is_semop(const char *call)
{
	return call && (!strcmp(call, "semop") || !strcmp(call, "semtimedop"));
}

static bool waits_for_semaphore(const struct finding_input *in, u32 i)
{
	const struct profile_key *key = profile__key(in->profile, i);

	return key->state == ACTIVITY_BLOCKED && profile__cell(in->profile, i)->kind == FINDING_IDLE &&
	       key->reason < ACTIVITY_CAUSE_BASE && is_semop(activity__name(in->activity, key->reason));
}

static void set_semaphore(const struct profile *p, u32 i)
{
	struct profile_thread *t = map__find(&p->threads, &profile__key(p, i)->thread);
	struct profile_cell *cell = profile__cell(p, i);

	cell->kind = FINDING_SEMAPHORE;
	if (t)
		t->idle_ns -= cell->ns;
}

/* A thread takes a semaphore itself if it waits for one in this part of its time. */
#define TAKES_PART 20

struct semaphore_waits {
	struct thread_key thread, by; /* the thread that waited, and the one that ended its waits; by 0: any */
};

static int add_semaphore_wait(struct map *waited, const struct semaphore_waits *key, u64 ns)
{
	u64 *sum = map__get(waited, key);

	if (sum)
		*sum += ns;
	return sum ? 0 : -ENOMEM;
}

static u64 semaphore_ns(const struct map *waited, struct thread_key thread, struct thread_key by)
{
	const u64 *ns = map__find(waited, &(struct semaphore_waits){ thread, by });

	return ns ? *ns : 0;
}

/*
 * Returns whether `thread` waits for a semaphore that `by` takes, too. A server that waits in the same call for its
 * only client's next request is idle, although the client takes part: it waits there for the answer. So a thread that
 * waits for most of its time does not count if it alone ends the other one's waits.
 */
static bool is_excluded(const struct finding_input *in, const struct map *waited, struct thread_key thread,
			struct thread_key by)
{
	const struct profile_thread *t = map__find(&in->profile->threads, &thread),
				    *other = map__find(&in->profile->threads, &by);
	const struct thread_key any = { 0 };
	u64 ns = semaphore_ns(waited, by, any);

	if (!t || !other || !ns || TAKES_PART * ns < other->wall)
		return false;
	return 2 * semaphore_ns(waited, thread, any) <= t->wall || 10 * semaphore_ns(waited, by, thread) < 9 * ns;
}

int classify_semaphore__waits(const struct finding_input *in)
{
	const struct profile *p = in->profile;
	struct map waited; /* struct semaphore_waits -> u64: ns */
	int err = 0;

	map__init(&waited, sizeof(struct semaphore_waits), sizeof(u64));
	for (u32 i = 0; i < p->cells.n && !err; i++) {
		struct semaphore_waits key = { .thread = profile__key(p, i)->thread };

		if (!waits_for_semaphore(in, i))
			continue;
		err = add_semaphore_wait(&waited, &key, profile__cell(p, i)->ns);
		key.by = profile__key(p, i)->caused_by;
		if (!err && key.by.tid)
			err = add_semaphore_wait(&waited, &key, profile__cell(p, i)->ns);
	}
	for (u32 i = 0; i < p->cells.n && waited.n && !err; i++) {
		const struct profile_key *key = profile__key(p, i);

		if (waits_for_semaphore(in, i) && is_excluded(in, &waited, key->thread, key->caused_by))
			set_semaphore(p, i);
	}
	map__free(&waited);
	return err;
}
