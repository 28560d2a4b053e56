// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses the threads on which spans are drawn. Spans of one thread have to nest or be disjoint, so the scheduler's
 * spans, which cross the others, and other overlapping spans get threads of their own, named "NAME: KIND", with unused
 * thread numbers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/chrome.h"
#include "output/json_writer.h"

struct lane_key {
	u32 pid, tid;
	const char *kind; /* NULL: the thread itself; lives as long as the schema or the program */
	u64 number;
};

struct chrome_lane {
	struct lane lane;
	u32 tid; /* 0: no name was written for it yet */
};

static void put_lane_name(struct export *e, const struct lane_key *key, u32 tid)
{
	const char *comm = names__comm(e->names, key->pid, key->tid);
	char name[128];

	snprintf(name, sizeof(name), "%s: %s", comm ? comm : "?", key->kind);
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":",
		chrome__number(key->pid), tid);
	json__print_text(e->out, name, strlen(name));
	fprintf(e->out, ",\"thread\":%u}}", chrome__number(key->tid));
}

/* Functions of Python may begin in one step and end in another. */
static bool is_step(const char *kind)
{
	return !strcmp(kind, "torch_step") || !strcmp(kind, "steps");
}

int chrome__place(struct export *e, u32 pid, u32 tid, const char *kind, const char *lane, const struct interval *span,
		  u32 *out)
{
	struct chrome *c = e->data;
	struct lane_key key = { .pid = pid, .tid = tid, .kind = lane };
	struct chrome_lane *l;

	if (c->python.numbers && is_step(kind))
		key.kind = "steps";
	for (;;) {
		l = map__get(&c->lanes, &key);
		if (!l)
			return -ENOMEM;
		if (lane__fits(&l->lane, span))
			break;
		if (key.kind)
			key.number++;
		else
			key.kind = kind;
	}
	if (!key.kind) {
		*out = tid;
	} else {
		if (!l->tid) {
			l->tid = CHROME_FIRST_LANE + c->lanes.n;
			put_lane_name(e, &key, l->tid);
		}
		*out = l->tid;
	}
	return lane__add(&l->lane, span);
}

void chrome__init_lanes(struct chrome *c)
{
	map__init(&c->lanes, sizeof(struct lane_key), sizeof(struct chrome_lane));
}

void chrome__free_lanes(struct chrome *c)
{
	for (u32 i = 0; i < c->lanes.n; i++)
		lane__free(&((struct chrome_lane *)map__value(&c->lanes, i))->lane);
	map__free(&c->lanes);
}
