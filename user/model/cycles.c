// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/cycles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/view.h"
#include "probes/torch/torch.h"
#include "util/array.h"
#include "util/map.h"

/* A recording of steps of 1 ms has so many in an hour; further ones, of a hostile file, are ignored. */
#define CYCLES_MAX (1u << 20)

struct phase_key {
	u32 pid, unused;
	u64 from; /* ns */
};

struct phase {
	u32 cycle; /* 0: its begin was not recorded */
	u32 unused;
	u64 to; /* ns; 0: its end was not recorded */
};

/* The begin and the end of an active phase are events of their own, which may be read in any order. */
static int on_phases(const struct rows *rows, void *arg)
{
	struct map *phases = arg;

	ROWS_EACH(v, rows) {
		u64 since = (u64)view__get(&v, "since"), time = (u64)view__get(&v, "time");
		struct phase_key key = { .pid = (u32)view__get(&v, "pid"), .from = since };
		struct phase *p = since ? map__get(phases, &key) : NULL;

		if (since && !p)
			return -ENOMEM;
		if (p)
			p->to = time;
		if (view__get(&v, "phase") != STEP_ACTIVE)
			continue;
		key.from = time;
		p = map__get(phases, &key);
		if (!p)
			return -ENOMEM;
		p->cycle = (u32)view__get(&v, "cycle");
	}
	return 0;
}

static int add(struct cycles *c, u32 cycle, u64 from, u64 to)
{
	struct trace_window *w;

	if (cycle > CYCLES_MAX || from >= to)
		return 0;
	while (c->n < cycle)
		if (!array__push(c->list, c->n, (struct trace_window){ .from = ~0ull }))
			return -ENOMEM;
	w = &c->list[cycle - 1];
	w->from = from < w->from ? from : w->from;
	w->to = to > w->to ? to : w->to;
	return 0;
}

int cycles__load(struct cycles *c, struct trace *t)
{
	struct map phases, first; /* u32 pid -> u64: when its first active phase began */
	int err;

	*c = (struct cycles){ 0 };
	map__init(&phases, sizeof(struct phase_key), sizeof(struct phase));
	err = trace__read_kind(t, "torch_phase", on_phases, &phases);
	map__init(&first, sizeof(u32), sizeof(u64));
	for (u32 i = 0; !err && i < phases.n; i++) {
		const struct phase_key *key = map__key(&phases, i);
		u64 *from = map__get(&first, &key->pid);

		if (from && (!*from || key->from < *from))
			*from = key->from;
		err = from ? 0 : -ENOMEM;
	}
	for (u32 i = 0; !err && i < phases.n; i++) {
		const struct phase_key *key = map__key(&phases, i);
		const struct phase *p = map__value(&phases, i);

		/*
		 * A process whose first step is active reports no begin: its cycle is the first one. Any other phase
		 * without a begin lost it, and is in no cycle.
		 */
		if (p->cycle || key->from == *(u64 *)map__find(&first, &key->pid))
			err = add(c, p->cycle ? p->cycle : 1, key->from, p->to ? p->to : trace__summary(t)->last);
	}
	MAPS_FREE(&first, &phases);
	return err;
}

void cycles__free(struct cycles *c)
{
	free(c->list);
	*c = (struct cycles){ 0 };
}
