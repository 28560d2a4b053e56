/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls the families' host code (record/family.h), of the families that are on. */
#pragma once

#include "record/family.h"

struct object;

/* The state of one family's host code in one recording. */
struct host_state {
	bool has_begun;
	u32 last_followed; /* process of the last call; a pid may exec, or be reused, by the next tick */
	u64 next_tick;
	void *data; /* h->state bytes */
};

/* From hosts__open() to hosts__free(), by family id. */
struct hosts {
	const struct family_host *list[FAMILY_MAX]; /* NULL: no host code, or the family was off at the start */
	struct host_state states[FAMILY_MAX];
};

/* Allocates the state of the families that are on, and calls their `prepare`. 0 or -ENOMEM */
int hosts__open(struct session *s);
/* Each calls the function of this name, after `begin`. */
void hosts__free(struct session *s);
void hosts__tick(struct session *s, u64 now);
void hosts__process_selected(struct session *s, u32 pid);
void hosts__mapped(struct session *s, struct object *o, const struct mapping *m);
/* Returns the host code of a family by its id; NULL: none, or the family was off at the start. */
const struct family_host *hosts__of(const struct session *s, u32 family);
/* Lets the record's family change it; returns false if the record is to be discarded. */
bool host__cut(struct session *s, void *record, u32 size);
void host__event(struct session *s, u8 family, const struct event *e, u32 size);
/* Calls fn for the host code of each family that is on. */
void hosts__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, u8 family, void *arg),
		 void *arg);
