// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/line_tables.h"

#include <stdlib.h>
#include <string.h>

#define OVERHEAD 48 /* approximate overhead of a map entry and of malloc */

void line_tables__init(struct line_tables *t)
{
	map__init(&t->by_hash, sizeof(u64), sizeof(struct line_table *));
	t->bytes = 0;
}

void line_tables__free(struct line_tables *t)
{
	map__free(&t->by_hash);
}

static u64 bytes_of(const struct line_table *l)
{
	return sizeof(*l) + l->size + OVERHEAD;
}

struct line_table *line_tables__take(struct line_tables *t, const u8 *data, u32 size)
{
	u64 hash = map__hash_bytes(data, size);
	struct line_table **known = map__get(&t->by_hash, &hash), *l = known ? *known : NULL;

	/* different tables may have the same hash, so the contents decide */
	if (l && l->size == size && (!size || !memcmp(l->data, data, size))) {
		l->users++;
		return l;
	}
	l = known ? malloc(sizeof(*l) + size) : NULL;
	if (!l)
		return NULL;
	*l = (struct line_table){ .hash = hash, .users = 1, .size = size };
	if (size)
		memcpy(l->data, data, size);
	if (!*known)
		*known = l;
	t->bytes += bytes_of(l);
	return l;
}

void line_tables__put(struct line_tables *t, struct line_table *l)
{
	struct line_table **known;

	if (!l || --l->users)
		return;
	known = map__find(&t->by_hash, &l->hash);
	if (known && *known == l)
		map__remove(&t->by_hash, &l->hash);
	t->bytes -= bytes_of(l);
	free(l);
}
