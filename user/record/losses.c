// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was lost where and when: from the BPF counters and from the loader itself into meta_loss records. */
#include "record/internal.h"
#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS (MAX_FAMILIES * LOSS_REASONS)

struct losses {
	u64 seen[COUNTERS];
	u64 recursion; /* recursion misses already told */
	u64 total;
	u64 last_poll;
	u32 cpus;
	struct loss_count per_cpu[];
};

int losses__new(struct session *s)
{
	int cpus = libbpf_num_possible_cpus();

	s->losses = calloc(1, sizeof(*s->losses) + cpus * sizeof(struct loss_count));
	if (!s->losses)
		return -ENOMEM;
	s->losses->cpus = cpus;
	s->losses->last_poll = session__now(s);
	return 0;
}

void losses__free(struct losses *l)
{
	free(l);
}

void losses__add(struct session *s, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last, u16 object)
{
	struct meta_loss r = {
		.event = session__event(s, ID_meta_loss),
		.first = first,
		.last = last,
		.count = count,
		.family = family,
		.object = object,
		.reason = reason,
	};

	/* a blind window counts a library, not records */
	if (reason != LOSS_BLIND)
		s->losses->total += count;
	session__emit(s, &r, sizeof(r));
}

static void poll_counter(struct session *s, u32 key)
{
	struct losses *l = s->losses;
	u64 count = 0, first = ~0ULL, last = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.losses), &key, l->per_cpu))
		return;
	for (u32 i = 0; i < l->cpus; i++) {
		const struct loss_count *c = &l->per_cpu[i];

		if (!c->count)
			continue;
		count += c->count;
		if (c->first < first)
			first = c->first;
		if (c->last > last)
			last = c->last;
	}
	if (count == l->seen[key])
		return;
	/* the kernel keeps the first of all; what is new came after the last look */
	if (first < l->last_poll && l->seen[key])
		first = l->last_poll;
	losses__add(s, key / LOSS_REASONS, key % LOSS_REASONS, count - l->seen[key], first, last, 0);
	l->seen[key] = count;
}

/* Programs that the kernel skipped because they were already running on that CPU. */
static void poll_recursion(struct session *s, u64 now)
{
	struct losses *l = s->losses;
	u64 sum = 0;

	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		struct bpf_prog_info info = {};
		u32 size = sizeof(info);

		if (s->embedded.probes.programs[i].enabled &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(s->embedded.probes.programs[i].prog), &info, &size))
			sum += info.recursion_misses;
	}
	if (sum > l->recursion)
		losses__add(s, 0, LOSS_RECURSION, sum - l->recursion, l->last_poll, now, 0);
	l->recursion = sum;
}

void losses__poll(struct session *s)
{
	u64 now = session__now(s);

	for (u32 key = 0; key < COUNTERS; key++)
		poll_counter(s, key);
	poll_recursion(s, now);
	s->losses->last_poll = now;
}

u64 losses__total(const struct losses *l)
{
	return l ? l->total : 0;
}
