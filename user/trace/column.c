// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/column.h"
#include "trace/format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "planes are copied from numbers in memory, lowest byte first");

#define DICT_BITS  9 /* twice as many slots as values, for short searches */
#define DICT_RETRY 16 /* chunks in which no dictionary is tried after one was useless */

struct column_dict {
	u32 n;
	u64 values[COLUMN_DICT_MAX];
	u16 slots[1 << DICT_BITS]; /* index + 1 */
};

void column__init(struct column *c, u32 size, enum column_transform first)
{
	memset(c, 0, sizeof(*c));
	c->size = size;
	c->first = size == 1 && first == COLUMN_DICT ? COLUMN_PLAIN : first;
	c->transform = c->first;
}

/* Returns a value; the planes that are not stored are filled with its bytes. */
static u64 column__fill(const struct column *c)
{
	return c->transform == COLUMN_PLAIN || c->transform == COLUMN_BEFORE ? c->base : 0;
}

static u8 byte_mask(u64 bits)
{
	u8 mask = 0;
	int i;

	for (i = 0; i < 8; i++)
		if (bits >> 8 * i & 0xff)
			mask |= 1 << i;
	return mask;
}

static int column__grow(struct column *c, u32 rows)
{
	u32 room = c->capacity ? c->capacity : 2 * COLUMN_BLOCK;
	int i;

	while (room < rows)
		room *= 2;
	for (i = 0; i < c->size; i++) {
		u8 *plane;

		if (!c->planes[i])
			continue;
		plane = realloc(c->planes[i], room);
		if (!plane)
			return -ENOMEM;
		c->planes[i] = plane;
	}
	c->capacity = room;
	return 0;
}

/* Begins to store the planes in `fresh`, whose bytes have been equal so far. */
static int column__open_planes(struct column *c, u8 fresh)
{
	u64 fill = column__fill(c);
	int i;

	for (i = 0; i < c->size; i++) {
		if (!(fresh >> i & 1))
			continue;
		if (!c->planes[i])
			c->planes[i] = malloc(c->capacity);
		if (!c->planes[i])
			return -ENOMEM;
		memset(c->planes[i], fill >> 8 * i & 0xff, c->rows);
		c->mask |= 1 << i;
	}
	return 0;
}

/* Makes room for n more rows, in which `bits` differ from the fill. */
static int column__prepare(struct column *c, u64 bits, u32 n)
{
	u8 fresh = bits ? byte_mask(bits) & ~c->mask : 0;
	int err = c->rows + n > c->capacity ? column__grow(c, c->rows + n) : 0;

	return !err && fresh ? column__open_planes(c, fresh) : err;
}

static inline __attribute__((always_inline)) int store(struct column *c, const u64 *values, u32 n)
{
	u64 fill = column__fill(c), bits = 0;
	u32 p, i;
	int err;

	for (i = 0; i < n; i++)
		bits |= values[i] ^ fill;
	err = column__prepare(c, bits, n);
	if (err)
		return err;
	for (p = 0; p < c->size; p++) {
		/* a byte load is cheaper than a variable shift; the host is little-endian, as the file is */
		const u8 *from = (const u8 *)values + p;
		u8 *to = c->planes[p] + c->rows;

		if (!(c->mask >> p & 1))
			continue;
		for (i = 0; i < n; i++)
			to[i] = from[i * sizeof(*values)];
	}
	c->rows += n;
	return 0;
}

static int column__store(struct column *c, const u64 *values, u32 n)
{
	/* With a constant number of rows the compiler uses vectors. */
	return n == COLUMN_BLOCK ? store(c, values, COLUMN_BLOCK) : store(c, values, n);
}

static int column__store_same(struct column *c, u64 value, u32 n)
{
	int p, err = column__prepare(c, value ^ column__fill(c), n);

	if (err)
		return err;
	for (p = 0; p < c->size; p++)
		if (c->mask >> p & 1)
			memset(c->planes[p] + c->rows, value >> 8 * p & 0xff, n);
	c->rows += n;
	return 0;
}

/* Returns the value's index; COLUMN_DICT_MAX: there is no more room. */
static u32 dict__index(struct column_dict *d, u64 value)
{
	u32 slot = value * 0x9e3779b97f4a7c15ULL >> (64 - DICT_BITS);

	while (d->slots[slot]) {
		if (d->values[d->slots[slot] - 1] == value)
			return d->slots[slot] - 1;
		slot = (slot + 1) & ((1 << DICT_BITS) - 1);
	}
	if (d->n == COLUMN_DICT_MAX)
		return COLUMN_DICT_MAX;
	d->values[d->n] = value;
	d->slots[slot] = ++d->n;
	return d->n - 1;
}

/* Converts the rows to COLUMN_PLAIN, because there are too many values for a dictionary. */
static int column__to_plain(struct column *c)
{
	u8 *indexes = c->planes[0];
	u32 rows = c->rows, done, n, i;
	bool stored = c->mask & 1;
	u64 block[COLUMN_BLOCK];
	int err = 0;

	c->planes[0] = NULL;
	c->rows = 0;
	c->mask = 0;
	c->transform = COLUMN_PLAIN;
	c->base = c->dict->values[0];
	for (done = 0; done < rows && !err; done += n) {
		n = rows - done < COLUMN_BLOCK ? rows - done : COLUMN_BLOCK;
		for (i = 0; i < n; i++)
			block[i] = c->dict->values[stored ? indexes[done + i] : 0];
		err = column__store(c, block, n);
	}
	free(indexes);
	return err;
}

static int column__need_dict(struct column *c)
{
	if (!c->dict)
		c->dict = calloc(1, sizeof(*c->dict));
	return c->dict ? 0 : -ENOMEM;
}

static int column__push_dict(struct column *c, const u64 *values, u32 n)
{
	u64 indexes[COLUMN_BLOCK];
	u32 i;
	int err = column__need_dict(c);

	if (err)
		return err;
	for (i = 0; i < n; i++) {
		indexes[i] = dict__index(c->dict, values[i]);
		if (indexes[i] == COLUMN_DICT_MAX)
			break;
	}
	if (i == n)
		return column__store(c, indexes, n);
	err = column__to_plain(c);
	return err ? err : column__store(c, values, n);
}

int column__push_same(struct column *c, u64 value, u32 n)
{
	u32 index;
	int err = c->transform == COLUMN_DICT ? column__need_dict(c) : 0;

	if (err)
		return err;
	if (c->transform == COLUMN_DICT) {
		index = dict__index(c->dict, value);
		if (index < COLUMN_DICT_MAX)
			return column__store_same(c, index, n);
		err = column__to_plain(c);
		if (err)
			return err;
	} else if (!c->rows) {
		c->base = value;
	}
	return column__store_same(c, value, n);
}

static void delta(u64 *to, const u64 *values, u64 previous, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		s64 d = values[i] - previous;

		to[i] = (u64)d << 1 ^ (u64)(d >> 63);
		previous = values[i];
	}
}

int column__push(struct column *c, const u64 *values, const u64 *time, u32 n)
{
	u64 block[COLUMN_BLOCK];
	u32 i;

	if (!n)
		return 0;
	switch (c->transform) {
	case COLUMN_DICT:
		return column__push_dict(c, values, n);
	case COLUMN_DELTA:
		if (!c->rows)
			c->base = c->previous = values[0];
		delta(block, values, c->previous, n);
		c->previous = values[n - 1];
		return column__store(c, block, n);
	case COLUMN_BEFORE:
		for (i = 0; i < n; i++)
			block[i] = time[i] - values[i];
		if (!c->rows)
			c->base = block[0];
		return column__store(c, block, n);
	default:
		if (!c->rows)
			c->base = values[0];
		return column__store(c, values, n);
	}
}

static u32 column__n_dict(const struct column *c)
{
	return c->transform == COLUMN_DICT && c->dict ? c->dict->n : 0;
}

u32 column__head_size(const struct column *c)
{
	return COLUMN_HEAD + c->size + column__n_dict(c) * c->size;
}

void column__write_head(const struct column *c, u8 *to)
{
	u32 n = column__n_dict(c), i;

	to[0] = c->transform;
	to[1] = c->mask;
	put16(to + 2, n);
	to += COLUMN_HEAD;
	put_number(to, c->size, c->transform == COLUMN_DICT ? 0 : c->base);
	for (i = 0; i < n; i++)
		put_number(to + (1 + i) * c->size, c->size, c->dict->values[i]);
}

/* Returns whether a dictionary is useful: its values differ in more than one byte. */
static bool dict__saves(const struct column_dict *d)
{
	u64 bits = 0;
	u32 i;
	u8 mask;

	for (i = 1; i < d->n; i++)
		bits |= d->values[i] ^ d->values[0];
	mask = byte_mask(bits);
	return mask & (mask - 1);
}

void column__reset(struct column *c)
{
	if (c->first == COLUMN_DICT && c->rows) {
		if (c->patience)
			c->patience--;
		else if (c->transform != COLUMN_DICT || (c->dict->n > 1 && !dict__saves(c->dict)))
			c->patience = DICT_RETRY;
	}
	if (c->dict) {
		c->dict->n = 0;
		memset(c->dict->slots, 0, sizeof(c->dict->slots));
	}
	c->transform = c->first == COLUMN_DICT && c->patience ? COLUMN_PLAIN : c->first;
	c->rows = 0;
	c->mask = 0;
	c->base = 0;
}

void column__trim(struct column *c)
{
	int i;

	for (i = 0; i < 8; i++) {
		free(c->planes[i]);
		c->planes[i] = NULL;
	}
	free(c->dict);
	c->dict = NULL;
	c->capacity = 0;
	c->rows = 0;
	c->mask = 0;
}

size_t column__memory(const struct column *c)
{
	size_t n = c->dict ? sizeof(*c->dict) : 0;
	int i;

	for (i = 0; i < c->size; i++)
		n += c->planes[i] ? c->capacity : 0;
	return n;
}
