/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table from keys of one fixed size to values of one fixed size. A value's address does not change; entries are
 * in order of insertion until one is removed. Zero a key's padding: keys are compared as bytes.
 */
#pragma once

#include "core/types.h"

struct map_block;
struct map_hole;

struct map_slot {
	u32 entry; /* index into the entries plus one, 0: free */
	u32 hash;
};

struct map {
	size_t key_size, value_size;
	void **entries; /* in order of insertion; each is the key, then the value */
	u32 n, allocated;
	struct map_slot *slots;
	u32 n_slots; /* a power of two */
	struct map_block *blocks; /* memory of the entries */
	size_t unused; /* entries at the beginning of the first block */
	struct map_hole *holes; /* memory of removed entries */
	size_t block_bytes;
};

void map__init(struct map *m, size_t key_size, size_t value_size);
/* Frees the entries. The map is empty then, and can be used again. */
void map__free(struct map *m);
/* Frees several tables: MAPS_FREE(&sums, &names). */
#define MAPS_FREE(...) maps__free((struct map *const[]){ __VA_ARGS__, NULL })
void maps__free(struct map *const maps[]);
/* Returns the value; NULL: there is none. */
void *map__find(const struct map *m, const void *key);
/* Returns the value, zeroed if it is new; NULL: no memory. */
void *map__get(struct map *m, const void *key);
/* Removes the key if present; the last entry takes its index. */
void map__remove(struct map *m, const void *key);
/* Returns the bytes of memory that the table occupies. */
u64 map__bytes(const struct map *m);
/* Hashes with this process's seed, so that other processes can't choose texts of equal hash. */
u64 map__hash_bytes(const void *data, size_t size);
/* i < m->n */
const void *map__key(const struct map *m, u32 i);
void *map__value(const struct map *m, u32 i);

/*
 * Loops over the values, or over values and keys, in order of the entries: MAP_EACH(struct sum *s, &sums),
 * MAP_EACH_ENTRY(struct sum *s, const struct key *k, &sums). The loop must not remove entries; `break` ends it.
 */
#define MAP_EACH(value, map)                                          \
	for (u32 at_ = 0, open_ = 0; !open_ && at_ < (map)->n; at_++) \
		for (value = (open_ = 1, map__value(map, at_)); open_; open_ = 0)
#define MAP_EACH_ENTRY(value, key, map)                                       \
	for (u32 at_ = 0, open_ = 0; !open_ && at_ < (map)->n; at_++)         \
		for (key = (open_ = 1, map__key(map, at_)); open_; open_ = 0) \
			for (value = map__value(map, at_); open_; open_ = 0)
