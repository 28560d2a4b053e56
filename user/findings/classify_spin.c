// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/classify_spin.h"

#include <errno.h>

#include "findings/classify.h"
#include "model/lock_kind.h"

/* Samples of a thread, ns */
struct spin {
	u64 all, idle;
};

bool classify_spin__is_idle(const struct stacks *stacks, u32 stack)
{
	struct stack_parts parts = stack_parts__of(stacks, stack);

	if (parts.python || parts.waits_in_loop)
		return false;
	return parts.rule == FINDING_IDLE || lock_kind__is_idle_in_openmp(stacks, stack);
}

static int sum_samples(const struct finding_input *in, struct map *threads)
{
	MAP_EACH_ENTRY(const struct profile_sample *sample, const struct profile_sample_key *key,
		       &in->profile->samples) {
		struct spin *s = map__get(threads, &key->thread);

		if (!s)
			return -ENOMEM;
		s->all += sample->ns;
		s->idle += classify_spin__is_idle(in->stacks, key->stack) ? sample->ns : 0;
	}
	return 0;
}

int classify_spin__threads(const struct finding_input *in)
{
	const struct spin *s;
	struct map threads;
	int err;

	map__init(&threads, sizeof(struct thread_key), sizeof(struct spin));
	err = sum_samples(in, &threads);
	MAP_EACH_ENTRY(struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		s = !err && cell->kind == FINDING_COMPUTE ? map__find(&threads, &key->thread) : NULL;
		if (s && 2 * s->idle > s->all)
			cell->kind = FINDING_IDLE;
	}
	map__free(&threads);
	return err;
}
