// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/map.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include "util/sanitizer.h"

/* Entries are allocated in blocks, each as large as all before it together, within these limits. */
#define BLOCK_ENTRIES_MIN 4
#define BLOCK_BYTES_MAX	  (64u << 10)

#define SLOTS_MIN 16

struct map_block {
	struct map_block *next;
	char entries[];
};

/* The memory of a removed entry */
struct map_hole {
	struct map_hole *next;
};

static size_t value_offset(const struct map *m)
{
	return (m->key_size + 7) & ~(size_t)7;
}

static size_t entry_size(const struct map *m)
{
	return (value_offset(m) + m->value_size + 7) & ~(size_t)7;
}

void map__init(struct map *m, size_t key_size, size_t value_size)
{
	memset(m, 0, sizeof(*m));
	m->key_size = key_size;
	m->value_size = value_size;
}

void map__free(struct map *m)
{
	while (m->blocks) {
		struct map_block *next = m->blocks->next;

		free(m->blocks);
		m->blocks = next;
	}
	free(m->entries);
	free(m->slots);
	map__init(m, m->key_size, m->value_size);
}

void maps__free(struct map *const maps[])
{
	for (; *maps; maps++)
		map__free(*maps);
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
 * A seed that no other process knows. Targets choose keys (names, addresses, contents), and with a known hash could put
 * all into one slot, which makes lookups slow. Output does not depend on it, as entries are in order of insertion.
 */
static u64 seed;

__attribute__((constructor)) static void make_seed(void)
{
	/* early in boot, without randomness, the time must do */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (u64)clock() << 32 ^ (u64)time(NULL);
}

u64 map__hash_bytes(const void *data, size_t size)
{
	return XXH3_64bits_withSeed(data, size, seed);
}

/* The finalizer of splitmix64 */
static u64 mix(u64 x)
{
	x = (x ^ seed) + (seed >> 32 | seed << 32);
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * Most keys are 8 or 16 bytes, as a process and a thread are: without library calls their lookups take half the time.
 */
static u32 map__hash(const struct map *m, const void *key)
{
	u64 x[2];

	if (m->key_size == sizeof(x[0])) {
		memcpy(x, key, sizeof(x[0]));
		return (u32)mix(x[0]);
	}
	if (m->key_size != sizeof(x))
		return (u32)map__hash_bytes(key, m->key_size);
	memcpy(x, key, sizeof(x));
	return (u32)mix(mix(x[0]) ^ x[1]);
}

static bool map__is_key(const struct map *m, const void *a, const void *b)
{
	u64 x[2], y[2];

	if (m->key_size == sizeof(x[0])) {
		memcpy(x, a, sizeof(x[0]));
		memcpy(y, b, sizeof(y[0]));
		return x[0] == y[0];
	}
	if (m->key_size != sizeof(x))
		return !memcmp(a, b, m->key_size);
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return x[0] == y[0] && x[1] == y[1];
}

/* Returns the slot of the key, or the free one for it. n_slots must not be 0. */
static struct map_slot *map__slot(const struct map *m, const void *key, u32 hash)
{
	u32 mask = m->n_slots - 1, at = hash & mask;

	/* most entries of other keys have another hash, so that their memory is not touched */
	while (m->slots[at].entry &&
	       (m->slots[at].hash != hash || !map__is_key(m, m->entries[m->slots[at].entry - 1], key)))
		at = (at + 1) & mask;
	return &m->slots[at];
}

void *map__find(const struct map *m, const void *key)
{
	u32 entry = m->n_slots ? map__slot(m, key, map__hash(m, key))->entry : 0;

	return entry ? map__value(m, entry - 1) : NULL;
}

/* Returns the most entries for n_slots. */
static u32 entries_max(u32 n_slots)
{
	return n_slots / 4 * 3;
}

/* Makes room for one more entry, with at most three quarters of the slots in use. */
static bool map__grow(struct map *m)
{
	u32 n = m->n_slots ? m->n_slots * 2 : SLOTS_MIN;
	struct map_slot *slots;
	void **entries;

	if (m->n < entries_max(m->n_slots))
		return true;
	if (n > 1u << 30)
		return false;
	entries = realloc(m->entries, entries_max(n) * sizeof(*entries));
	if (!entries)
		return false;
	m->entries = entries;
	m->allocated = entries_max(n);
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	for (u32 i = 0; i < m->n_slots; i++) {
		u32 at = m->slots[i].hash & (n - 1);

		if (!m->slots[i].entry)
			continue;
		while (slots[at].entry)
			at = (at + 1) & (n - 1);
		slots[at] = m->slots[i];
	}
	free(m->slots);
	m->slots = slots;
	m->n_slots = n;
	return true;
}

/* Adds a block of entries; false: no memory. */
static bool map__add_block(struct map *m)
{
	size_t size = entry_size(m), n = m->n < BLOCK_ENTRIES_MIN ? BLOCK_ENTRIES_MIN : m->n;
	struct map_block *b;

	if (n > BLOCK_BYTES_MAX / size)
		n = BLOCK_BYTES_MAX / size ? BLOCK_BYTES_MAX / size : 1;
	/* one entry a block, so that AddressSanitizer reports accesses beyond it */
	if (SANITIZED)
		n = 1;
	b = malloc(sizeof(*b) + n * size);
	if (!b)
		return false;
	b->next = m->blocks;
	m->blocks = b;
	m->unused = n;
	m->block_bytes += sizeof(*b) + n * size;
	return true;
}

/* Returns memory for an entry; NULL: no memory. */
static void *map__new_entry(struct map *m)
{
	struct map_hole *hole = m->holes;

	if (hole) {
		ASAN_UNPOISON_MEMORY_REGION(hole, entry_size(m));
		m->holes = hole->next;
		return hole;
	}
	if (!m->unused && !map__add_block(m))
		return NULL;
	return m->blocks->entries + --m->unused * entry_size(m);
}

void *map__get(struct map *m, const void *key)
{
	u32 hash = map__hash(m, key);
	struct map_slot *slot = m->n_slots ? map__slot(m, key, hash) : NULL;
	void *entry;

	if (slot && slot->entry)
		return map__value(m, slot->entry - 1);
	if (!map__grow(m))
		return NULL;
	entry = map__new_entry(m);
	if (!entry)
		return NULL;
	memset(entry, 0, entry_size(m));
	memcpy(entry, key, m->key_size);
	m->entries[m->n] = entry;
	*map__slot(m, key, hash) = (struct map_slot){ ++m->n, hash };
	return map__value(m, m->n - 1);
}

/* Frees a slot: moves up later entries that a lookup would miss. */
static void map__close_gap(struct map *m, u32 gap)
{
	u32 mask = m->n_slots - 1;

	for (u32 at = (gap + 1) & mask; m->slots[at].entry; at = (at + 1) & mask) {
		u32 home = m->slots[at].hash & mask;

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		m->slots[gap] = m->slots[at];
		gap = at;
	}
	m->slots[gap].entry = 0;
}

void map__remove(struct map *m, const void *key)
{
	struct map_slot *slot = m->n_slots ? map__slot(m, key, map__hash(m, key)) : NULL;
	struct map_hole *hole;
	u32 i;

	if (!slot || !slot->entry)
		return;
	i = slot->entry - 1;
	map__close_gap(m, slot - m->slots);
	if (i != m->n - 1)
		map__slot(m, m->entries[m->n - 1], map__hash(m, m->entries[m->n - 1]))->entry = i + 1;
	hole = m->entries[i];
	hole->next = m->holes;
	m->holes = hole;
	ASAN_POISON_MEMORY_REGION(hole, entry_size(m));
	m->entries[i] = m->entries[--m->n];
}

u64 map__bytes(const struct map *m)
{
	return m->block_bytes + m->allocated * sizeof(*m->entries) + m->n_slots * sizeof(*m->slots);
}
