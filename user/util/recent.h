/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table of bounded size. New entries go into the young generation; when it is full it becomes the old one, and
 * the old one before it is freed. An old entry that is found moves to the young generation again. So an entry is kept
 * as long as it is used at least once while `max` others are added, and there are at most 2 * max. Keys as in util/map.h.
 */
#ifndef SONDE_UTIL_RECENT_H
#define SONDE_UTIL_RECENT_H

#include "util/map.h"

struct recent {
	struct map young, old;
	u32 max; /* entries of a generation */
	u64 evicted;
	void (*release)(void *value); /* called with each value that goes; NULL: it owns nothing */
};

void recent__init(struct recent *c, size_t key_size, size_t value_size, u32 max);
void recent__free(struct recent *c);
/* The value, NULL if there is none. Valid until the next call. */
void *recent__find(struct recent *c, const void *key);
/* The same, but it does not count as use. */
void *recent__peek(const struct recent *c, const void *key);
/* The value, added as zeros if there was none; NULL: no memory. Valid until the next call. */
void *recent__get(struct recent *c, const void *key);
/* Begins a generation before the young one has max entries, for an owner that also limits what values refer to. */
void recent__turn(struct recent *c);
/* Forgets all entries. */
void recent__clear(struct recent *c);
u32 recent__entries(const struct recent *c);
u64 recent__bytes(const struct recent *c);

#endif
