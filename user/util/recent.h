/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table of bounded size. New entries go into the young generation; when it is full, the old one is freed and
 * replaced by it. An old entry that is found moves to the young generation. So an entry is stored as long as it is used
 * at least once while `max` others are added, and there are at most 2 * max. Keys as in util/map.h.
 */
#pragma once

#include "util/map.h"

struct recent {
	struct map young, old;
	u32 max; /* entries of a generation */
	u64 evicted;
	void (*release)(void *value); /* called with each removed value; NULL: values own nothing */
};

void recent__init(struct recent *c, size_t key_size, size_t value_size, u32 max);
void recent__free(struct recent *c);
/* Returns the value, valid until the next call; NULL: there is none. */
void *recent__find(struct recent *c, const void *key);
/* As recent__find, but does not count as use. */
void *recent__peek(const struct recent *c, const void *key);
/* Returns the value, zeroed if it is new, valid until the next call; NULL: no memory. */
void *recent__get(struct recent *c, const void *key);
/* Begins a new generation early, for an owner that also limits what values refer to. */
void recent__turn(struct recent *c);
/* Forgets all entries. */
void recent__clear(struct recent *c);
u32 recent__entries(const struct recent *c);
u64 recent__bytes(const struct recent *c);
