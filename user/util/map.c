// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

static size_t value_offset(const struct map *m)
{
	return (m->key_size + 7) & ~(size_t)7;
}

void map__init(struct map *m, size_t key_size, size_t value_size)
{
	memset(m, 0, sizeof(*m));
	m->key_size = key_size;
	m->value_size = value_size;
}

void map__free(struct map *m)
{
	u32 i;

	for (i = 0; i < m->n; i++)
		free(m->entries[i]);
	free(m->entries);
	free(m->slots);
	map__init(m, m->key_size, m->value_size);
}

const void *map__key(const struct map *m, u32 i)
{
	return m->entries[i];
}

void *map__value(const struct map *m, u32 i)
{
	return (char *)m->entries[i] + value_offset(m);
}

/*
 * Targets choose keys: names, addresses, contents. Who knows the hash could choose such as have one slot, and each look-up
 * would pass all of them. So a number that no other process knows goes into it. Entries are in the order in which they were added, so no
 * output depends on it.
 */
static u64 seed;

__attribute__((constructor)) static void make_seed(void)
{
	/* at the machine's start, before there is randomness, the time has to do */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (u64)clock() << 32 ^ (u64)time(NULL);
}

u64 map__hash_bytes(const void *data, size_t size)
{
	return XXH3_64bits_withSeed(data, size, seed);
}

/* Most keys are 8 bytes, a process and a thread: without two calls into libraries a lookup of one takes half the time. */
static u64 map__hash(const struct map *m, const void *key)
{
	u64 x;

	if (m->key_size != sizeof(x))
		return map__hash_bytes(key, m->key_size);
	/* the finalizer of splitmix64 */
	memcpy(&x, key, sizeof(x));
	x = (x ^ seed) + (seed >> 32 | seed << 32);
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static bool map__is_key(const struct map *m, const void *a, const void *b)
{
	u64 x, y;

	if (m->key_size != sizeof(x))
		return !memcmp(a, b, m->key_size);
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y;
}

/* The slot that holds the key, or the free one where it belongs. n_slots is not 0. */
static u32 *map__slot(const struct map *m, const void *key)
{
	u32 mask = m->n_slots - 1;
	u32 at = (u32)map__hash(m, key) & mask;

	while (m->slots[at] && !map__is_key(m, m->entries[m->slots[at] - 1], key))
		at = (at + 1) & mask;
	return &m->slots[at];
}

void *map__find(const struct map *m, const void *key)
{
	u32 *slot;

	if (!m->n_slots)
		return NULL;
	slot = map__slot(m, key);
	return *slot ? map__value(m, *slot - 1) : NULL;
}

/* Keeps the slots at most half full and room for one more entry. */
static bool map__grow(struct map *m)
{
	u32 i, *slots, n = m->n_slots ? m->n_slots * 2 : 64;
	void **entries;

	if (m->n_slots && m->n < m->n_slots / 2)
		return true;
	if (n > 1u << 30)
		return false;
	entries = realloc(m->entries, n / 2 * sizeof(*entries));
	if (!entries)
		return false;
	m->entries = entries;
	m->allocated = n / 2;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	free(m->slots);
	m->slots = slots;
	m->n_slots = n;
	for (i = 0; i < m->n; i++)
		*map__slot(m, m->entries[i]) = i + 1;
	return true;
}

void *map__get(struct map *m, const void *key)
{
	void *entry, *value = map__find(m, key);

	if (value)
		return value;
	if (!map__grow(m))
		return NULL;
	entry = calloc(1, value_offset(m) + m->value_size);
	if (!entry)
		return NULL;
	memcpy(entry, key, m->key_size);
	m->entries[m->n] = entry;
	*map__slot(m, key) = ++m->n;
	return map__value(m, m->n - 1);
}

/* Closes the gap at a slot: entries behind it that a lookup would miss move up. */
static void map__close_gap(struct map *m, u32 gap)
{
	u32 mask = m->n_slots - 1;

	for (u32 at = (gap + 1) & mask; m->slots[at]; at = (at + 1) & mask) {
		u32 home = (u32)map__hash(m, m->entries[m->slots[at] - 1]) & mask;

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		m->slots[gap] = m->slots[at];
		gap = at;
	}
	m->slots[gap] = 0;
}

void map__remove(struct map *m, const void *key)
{
	u32 *slot = m->n_slots ? map__slot(m, key) : NULL, i;

	if (!slot || !*slot)
		return;
	i = *slot - 1;
	map__close_gap(m, slot - m->slots);
	if (i != m->n - 1)
		*map__slot(m, m->entries[m->n - 1]) = i + 1;
	free(m->entries[i]);
	m->entries[i] = m->entries[--m->n];
}

u64 map__bytes(const struct map *m)
{
	u64 entry = (value_offset(m) + m->value_size + 8 + 15) & ~15ULL;

	return m->n * entry + m->allocated * sizeof(*m->entries) + m->n_slots * sizeof(*m->slots);
}
