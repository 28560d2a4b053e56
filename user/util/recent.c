// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/recent.h"

#include <string.h>

void recent__init(struct recent *c, size_t key_size, size_t value_size, u32 max)
{
	*c = (struct recent){ .max = max };
	map__init(&c->young, key_size, value_size);
	map__init(&c->old, key_size, value_size);
}

static void free_generation(struct recent *c, struct map *m)
{
	for (u32 i = 0; c->release && i < m->n; i++)
		c->release(map__value(m, i));
	map__free(m);
}

void recent__free(struct recent *c)
{
	free_generation(c, &c->young);
	free_generation(c, &c->old);
}

void recent__clear(struct recent *c)
{
	c->evicted += recent__entries(c);
	recent__free(c);
}

/* Values do not move, because a table's entries stay where they are when the table becomes the old one. */
void recent__turn(struct recent *c)
{
	size_t key_size = c->young.key_size, value_size = c->young.value_size;

	c->evicted += c->old.n;
	free_generation(c, &c->old);
	c->old = c->young;
	map__init(&c->young, key_size, value_size);
}

static void *add(struct recent *c, const void *key)
{
	void *value = map__get(&c->young, key);

	if (value && c->young.n >= c->max)
		recent__turn(c);
	return value;
}

void *recent__find(struct recent *c, const void *key)
{
	void *value = map__find(&c->young, key), *old = value ? NULL : map__find(&c->old, key), *copy;

	if (value || !old)
		return value;
	copy = map__get(&c->young, key);
	if (!copy)
		return old;
	memcpy(copy, old, c->young.value_size);
	map__remove(&c->old, key);
	if (c->young.n >= c->max)
		recent__turn(c);
	return copy;
}

void *recent__peek(const struct recent *c, const void *key)
{
	void *value = map__find(&c->young, key);

	return value ? value : map__find(&c->old, key);
}

void *recent__get(struct recent *c, const void *key)
{
	void *value = recent__find(c, key);

	return value ? value : add(c, key);
}

u32 recent__entries(const struct recent *c)
{
	return c->young.n + c->old.n;
}

u64 recent__bytes(const struct recent *c)
{
	return map__bytes(&c->young) + map__bytes(&c->old);
}
