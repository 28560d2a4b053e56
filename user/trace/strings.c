// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <xxhash.h>

#include "trace/strings.h"

/* Returns the slot of the text, or the free one for it. n_slots must not be 0. */
static u32 *table__slot(const struct string_table *t, const char *text, size_t len, u64 hash)
{
	u32 i = hash & (t->n_slots - 1);

	for (; t->slots[i]; i = (i + 1) & (t->n_slots - 1)) {
		const struct string_entry *e = &t->entries[t->slots[i] - 1];

		if (e->hash == hash && e->len == len && !memcmp(t->text.data + e->at, text, len))
			break;
	}
	return &t->slots[i];
}

static int table__grow(struct string_table *t)
{
	u32 room = t->capacity ? t->capacity * 2 : 512, n_slots = room * 2, *slots, i, at;
	struct string_entry *entries;

	entries = realloc(t->entries, (size_t)room * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < t->n; i++) {
		at = entries[i].hash & (n_slots - 1);
		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	t->capacity = room;
	return 0;
}

static u32 table__find(const struct string_table *t, const char *text, size_t len, u64 hash)
{
	u32 *slot = t->n_slots ? table__slot(t, text, len, hash) : NULL;

	return slot && *slot ? t->entries[*slot - 1].id : 0;
}

static int table__add(struct string_table *t, const char *text, size_t len, u64 hash, u32 id)
{
	struct string_entry e = { .hash = hash, .at = (u32)t->text.n, .len = (u32)len, .id = id };

	if (t->n == t->capacity && table__grow(t))
		return -ENOMEM;
	if (bytes__add(&t->text, text, len))
		return -ENOMEM;
	t->entries[t->n++] = e;
	*table__slot(t, text, len, hash) = t->n;
	return 0;
}

static void table__free(struct string_table *t)
{
	bytes__free(&t->text);
	free(t->entries);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

static u64 table__bytes(const struct string_table *t)
{
	return t->text.capacity + t->capacity * sizeof(*t->entries) + t->n_slots * sizeof(*t->slots);
}

static void turn_generation(struct strings *s)
{
	s->evicted += s->old.n - s->moved;
	s->moved = 0;
	table__free(&s->old);
	s->old = s->young;
	memset(&s->young, 0, sizeof(s->young));
}

u32 strings__intern(struct strings *s, const char *text, size_t len, bool *fresh)
{
	u64 hash = XXH64(text, len, 0);
	u32 id = table__find(&s->young, text, len, hash);

	*fresh = false;
	if (id)
		return id;
	id = table__find(&s->old, text, len, hash);
	*fresh = !id;
	if (*fresh && s->last == ~0U)
		return 0;
	if (table__add(&s->young, text, len, hash, id ? id : s->last + 1)) {
		*fresh = false;
		return id;
	}
	if (*fresh)
		id = ++s->last;
	else
		s->moved++;
	if (s->young.n >= (s->max ? s->max : STRINGS_MAX) || s->young.text.n >= STRINGS_BYTES)
		turn_generation(s);
	return id;
}

void strings__forget(struct strings *s)
{
	s->evicted += strings__entries(s);
	s->moved = 0;
	table__free(&s->young);
	table__free(&s->old);
}

void strings__free(struct strings *s)
{
	table__free(&s->young);
	table__free(&s->old);
	memset(s, 0, sizeof(*s));
}

u32 strings__entries(const struct strings *s)
{
	return s->young.n + s->old.n - s->moved;
}

u64 strings__bytes(const struct strings *s)
{
	return table__bytes(&s->young) + table__bytes(&s->old);
}
