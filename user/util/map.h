/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table from keys of one fixed size to values of one fixed size. A
 * value's address stays; entries are kept in the order they were added, until one
 * is removed. Zero a key's padding: keys are compared as bytes.
 */
#ifndef SONDE_UTIL_MAP_H
#define SONDE_UTIL_MAP_H

#include "core/types.h"

struct map {
	size_t key_size, value_size;
	void **entries; /* in order; each is the key, then the value */
	u32 n, allocated;
	u32 *slots; /* index into entries plus one, 0: free */
	u32 n_slots; /* a power of two */
};

void map__init(struct map *m, size_t key_size, size_t value_size);
void map__free(struct map *m);
/* The value, NULL if there is none. */
void *map__find(const struct map *m, const void *key);
/* The value, added as zeros if there was none; NULL: no memory. */
void *map__get(struct map *m, const void *key);
/* Removes the key if it is there; the last entry takes its index. */
void map__remove(struct map *m, const void *key);
/* Bytes of memory that the table holds, those of malloc included. */
u64 map__bytes(const struct map *m);
/* A hash by this process's seed: of two texts that another process chose it differs. */
u64 map__hash_bytes(const void *data, size_t size);
/* i < m->n */
const void *map__key(const struct map *m, u32 i);
void *map__value(const struct map *m, u32 i);

#endif
