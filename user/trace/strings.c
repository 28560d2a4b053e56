// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <xxhash.h>

#include "trace/strings.h"

static u32 *strings__slot(const struct strings *s, const char *text, size_t len, u64 hash)
{
	u32 i = hash & (s->n_slots - 1);

	for (; s->slots[i]; i = (i + 1) & (s->n_slots - 1)) {
		const struct string_entry *e = &s->entries[s->slots[i] - 1];

		if (e->hash == hash >> 32 && e->len == len && !memcmp(s->text.at + e->at, text, len))
			break;
	}
	return &s->slots[i];
}

static int strings__grow(struct strings *s)
{
	u32 room = s->room ? s->room * 2 : 512, n_slots = room * 2, *slots, i, at;
	struct string_entry *entries;

	if (room > 1U << 29)
		return -ENOMEM;
	entries = realloc(s->entries, (size_t)room * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	s->entries = entries;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		const struct string_entry *e = &entries[i];

		at = XXH64(s->text.at + e->at, e->len, 0) & (n_slots - 1);
		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = i + 1;
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = n_slots;
	s->room = room;
	return 0;
}

u32 strings__intern(struct strings *s, const char *text, size_t len, bool *fresh)
{
	u64 hash = XXH64(text, len, 0);
	u32 *slot;

	*fresh = false;
	if (s->text.n > STRINGS_BYTES) {
		u32 before = s->before + s->n;

		strings__free(s);
		s->before = before;
	}
	if (s->n == s->room && strings__grow(s))
		return 0;
	slot = strings__slot(s, text, len, hash);
	if (*slot)
		return s->before + *slot;
	s->entries[s->n] = (struct string_entry){ s->text.n, len, hash >> 32 };
	if (bytes__add(&s->text, text, len))
		return 0;
	*fresh = true;
	*slot = ++s->n;
	return s->before + *slot;
}

void strings__free(struct strings *s)
{
	bytes__free(&s->text);
	free(s->entries);
	free(s->slots);
	memset(s, 0, sizeof(*s));
}
