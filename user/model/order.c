// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/search.h"

#define WINDOW	  2000000000ull /* ns */
#define MARGIN	  (WINDOW / 4) /* ns: handing on rarely saves sorting */
#define MAX_BYTES (32u << 20)

#define BLOCK_SIZE (256u << 10)

/* Room for records, one after the other; freed with the last of them. */
struct block {
	size_t len, size;
	u32 records; /* not yet handed on */
	char data[];
};

struct entry {
	u64 time, start;
	struct block *block;
	const struct schema_event *event;
	u32 offset, size;
};

struct order {
	int (*fn)(const struct view *v, void *arg);
	void *arg;
	struct block *block; /* has room perhaps */
	struct entry *entries;
	size_t n;
	size_t sorted; /* so many of the first entries are in order */
	struct entry *room; /* for merging */
	size_t room_size;
	size_t bytes;
	u64 newest;
};

struct order *order__new(int (*fn)(const struct view *v, void *arg), void *arg)
{
	struct order *o = calloc(1, sizeof(*o));

	if (o) {
		o->fn = fn;
		o->arg = arg;
	}
	return o;
}

static void block__put(struct block *b)
{
	if (b && !--b->records)
		free(b);
}

void order__free(struct order *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->n; i++)
		block__put(o->entries[i].block);
	block__put(o->block);
	free(o->entries);
	free(o->room);
	free(o);
}

static bool comes_before(const struct entry *x, const struct entry *y)
{
	return x->time != y->time ? x->time < y->time : x->start > y->start;
}

/* Merges [0, middle) and [middle, n) of e, each in order; equal ones keep the file's. room is for `middle` entries. */
static void merge(struct entry *e, size_t middle, size_t n, struct entry *room)
{
	size_t left = 0, right = middle, to = 0;

	memcpy(room, e, middle * sizeof(*e));
	while (left < middle && right < n)
		e[to++] = comes_before(&e[right], &room[left]) ? e[right++] : room[left++];
	memcpy(e + to, room + left, (middle - left) * sizeof(*e));
}

/* A file's events are in order by kind and CPU: most parts need no merging. room is for half of n. */
static void sort(struct entry *e, size_t n, struct entry *room)
{
	size_t middle = n / 2;

	if (n < 2)
		return;
	sort(e, middle, room);
	sort(e + middle, n - middle, room);
	if (comes_before(&e[middle], &e[middle - 1]))
		merge(e, middle, n, room);
}

/* How many of the first n entries, which are in order, come before e or are equal. */
static size_t count_before(const struct entry *entries, size_t n, const struct entry *e)
{
	return SEARCH(n, i, !comes_before(e, &entries[i]));
}

static int make_merging_room(struct order *o, size_t n)
{
	struct entry *more;

	if (n <= o->room_size)
		return 0;
	more = realloc(o->room, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	o->room = more;
	o->room_size = n;
	return 0;
}

/* Sorts in the records that were added since the last time. 0 or -ENOMEM. */
static int put_in_order(struct order *o)
{
	struct entry *added = o->entries + o->sorted;
	size_t n = o->n - o->sorted, first;
	int err;

	if (!n)
		return 0;
	err = make_merging_room(o, n / 2);
	if (err)
		return err;
	sort(added, n, o->room);
	first = count_before(o->entries, o->sorted, added);
	err = make_merging_room(o, o->sorted - first);
	if (err)
		return err;
	if (first < o->sorted)
		merge(o->entries + first, o->sorted - first, o->n - first, o->room);
	o->sorted = o->n;
	return 0;
}

/* Hands on what is older than `before`, and more until no more than max bytes are left. */
static int hand_on(struct order *o, u64 before, size_t max)
{
	struct entry *e;
	size_t i;
	int err;

	if (!o->n)
		return 0;
	err = put_in_order(o);
	for (i = 0; !err && i < o->n && (o->bytes > max || o->entries[i].time < before); i++) {
		e = &o->entries[i];
		err = o->fn(&(struct view){ .event = e->event, .record = e->block->data + e->offset, .size = e->size },
			    o->arg);
		o->bytes -= e->size + sizeof(*e);
		block__put(e->block);
	}
	memmove(o->entries, o->entries + i, (o->n - i) * sizeof(*o->entries));
	o->n -= i;
	o->sorted = o->sorted > i ? o->sorted - i : 0;
	return err;
}

/* Room for a record of that size at the end of o->block; NULL: no memory. */
static char *reserve(struct order *o, u32 size)
{
	struct block *b = o->block;

	/* the next one begins at a multiple of 8 */
	if (b)
		b->len = (b->len + 7) & ~(size_t)7;
	if (!b || b->len > b->size || b->size - b->len < size) {
		b = malloc(sizeof(*b) + (size > BLOCK_SIZE ? size : BLOCK_SIZE));
		if (!b)
			return NULL;
		b->len = 0;
		b->size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		b->records = 1; /* ours */
		block__put(o->block);
		o->block = b;
	}
	return b->data + b->len;
}

static int make_room(struct order *o)
{
	return array__room(o->entries, o->n) ? 0 : -ENOMEM;
}

static void put_field(char *record, const struct rows *rows, const struct schema_field *f, u32 i)
{
	const char *text;
	u64 value;
	double d;
	float s;
	u32 len;

	if (f->type == FIELD_TEXT || f->type == FIELD_TAIL) {
		text = rows__text(rows, f, i, &len);
		memcpy(record + f->offset, text, f->type == FIELD_TEXT && len > f->size ? f->size : len);
	} else if (f->type == FIELD_FLOAT) {
		d = rows__double(rows, f, i);
		s = (float)d;
		memcpy(record + f->offset, f->size == sizeof(d) ? (void *)&d : &s, f->size);
	} else {
		value = rows__u64(rows, f, i);
		memcpy(record + f->offset, &value, f->size);
	}
}

static int add_row(struct order *o, const struct rows *rows, u32 i, const struct common_fields *f,
		   const struct schema_field *tail)
{
	const struct schema_event *event = rows__event(rows);
	struct entry *entry;
	u32 j, len = 0;
	char *record;

	if (tail)
		rows__text(rows, tail, i, &len);
	record = reserve(o, event->size + len);
	if (!record || make_room(o))
		return -ENOMEM;
	memset(record, 0, event->size);
	for (j = 0; j < event->n; j++)
		put_field(record, rows, &event->fields[j], i);
	entry = &o->entries[o->n++];
	*entry = (struct entry){ .time = rows__u64(rows, f->time, i),
				 .block = o->block,
				 .event = event,
				 .offset = (u32)o->block->len,
				 .size = event->size + len };
	entry->start = f->start ? rows__u64(rows, f->start, i) : entry->time;
	o->block->len += entry->size;
	o->block->records++;
	o->bytes += entry->size + sizeof(*entry);
	o->newest = entry->time > o->newest ? entry->time : o->newest;
	return 0;
}

int order__add(struct order *o, const struct rows *rows)
{
	const struct schema_event *event = rows__event(rows);
	struct common_fields f = common_fields__of(event);
	const struct schema_field *last = event->n ? &event->fields[event->n - 1] : NULL;
	u32 i;
	int err = 0;

	if (last && last->type != FIELD_TAIL)
		last = NULL;
	for (i = 0; !err && i < rows__count(rows); i++)
		err = add_row(o, rows, i, &f, last);
	if (!err && o->bytes > MAX_BYTES)
		err = hand_on(o, 0, MAX_BYTES / 4 * 3);
	/* the first one is the oldest since the last hand-over */
	if (!err && o->n > 4096 && o->newest > WINDOW + MARGIN && o->entries[0].time < o->newest - WINDOW - MARGIN)
		err = hand_on(o, o->newest - WINDOW, MAX_BYTES);
	return err;
}

int order__finish(struct order *o)
{
	return hand_on(o, ~0ull, 0);
}
