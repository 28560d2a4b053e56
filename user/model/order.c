// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/search.h"

#define WINDOW	  2000000000ull /* ns */
#define MARGIN	  (WINDOW / 4) /* ns: emitting rarely saves sorting */
#define MAX_BYTES (32u << 20)

#define BLOCK_SIZE (256u << 10)

/* Memory for successive records, freed with the last of them */
struct block {
	size_t len, size;
	size_t records; /* not yet emitted, plus one for the order if it fills this block */
	char data[];
};

struct stored {
	u32 size;
	u16 offset; /* in the data of its block, in units of 8 bytes */
	u16 kind; /* index in the order's kinds */
	char record[]; /* begins with struct event or struct span, which the schema has checked */
};

/* Entries are small, because sorting moves them. */
struct entry {
	u64 time;
	struct stored *stored;
};

/* Bytes of memory per entry, with the unused half of a grown array and the scratch memory for merging */
#define ENTRY_BYTES (2 * sizeof(struct entry))

struct order {
	int (*fn)(const struct view *v, void *arg);
	void *arg;
	struct block *block; /* the block that is being filled */
	const struct schema_event **kinds; /* of the records */
	u32 n_kinds;
	struct entry *entries;
	size_t n;
	size_t sorted; /* the first `sorted` entries are in order */
	struct entry *scratch; /* scratch memory for merging */
	size_t scratch_size;
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

static void stored__put(const struct stored *s)
{
	block__put((struct block *)((char *)s - 8 * (size_t)s->offset - offsetof(struct block, data)));
}

void order__free(struct order *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->n; i++)
		stored__put(o->entries[i].stored);
	block__put(o->block);
	free(o->kinds);
	free(o->entries);
	free(o->scratch);
	free(o);
}

static struct view view_of(const struct order *o, const struct stored *s)
{
	return (struct view){ .event = o->kinds[s->kind], .record = s->record, .size = s->size };
}

static u64 start_of(const struct order *o, const struct entry *e)
{
	return o->kinds[e->stored->kind]->is_span ? ((const struct span *)e->stored->record)->start : e->time;
}

static bool comes_before(const struct order *o, const struct entry *x, const struct entry *y)
{
	return x->time != y->time ? x->time < y->time : start_of(o, x) > start_of(o, y);
}

/* Merges [0, middle) and [middle, n) of e, each in order; equal entries stay in order. scratch has `middle` entries. */
static void merge(struct order *o, struct entry *e, size_t middle, size_t n)
{
	struct entry *scratch = o->scratch;
	size_t left = 0, right = middle, to = 0;

	memcpy(scratch, e, middle * sizeof(*e));
	while (left < middle && right < n)
		e[to++] = comes_before(o, &e[right], &scratch[left]) ? e[right++] : scratch[left++];
	memcpy(e + to, scratch + left, (middle - left) * sizeof(*e));
}

/* Few merges are needed, as a file's events are in order for each kind and CPU. scratch has n / 2 entries. */
static void sort(struct order *o, struct entry *e, size_t n)
{
	size_t middle = n / 2;

	if (n < 2)
		return;
	sort(o, e, middle);
	sort(o, e + middle, n - middle);
	if (comes_before(o, &e[middle], &e[middle - 1]))
		merge(o, e, middle, n);
}

/* Returns how many of the n sorted entries come before e or are equal. */
static size_t count_before(const struct order *o, size_t n, const struct entry *e)
{
	return SEARCH(n, i, !comes_before(o, e, &o->entries[i]));
}

static int make_scratch(struct order *o, size_t n)
{
	struct entry *more;

	if (n <= o->scratch_size)
		return 0;
	more = realloc(o->scratch, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	o->scratch = more;
	o->scratch_size = n;
	return 0;
}

/* Sorts the records that were added since the last call and merges them in. 0 or -ENOMEM. */
static int sort_added(struct order *o)
{
	struct entry *added = o->entries + o->sorted;
	size_t n = o->n - o->sorted, first;
	int err;

	if (!n)
		return 0;
	err = make_scratch(o, n / 2);
	if (err)
		return err;
	sort(o, added, n);
	first = count_before(o, o->sorted, added);
	err = make_scratch(o, o->sorted - first);
	if (err)
		return err;
	if (first < o->sorted)
		merge(o, o->entries + first, o->sorted - first, o->n - first);
	o->sorted = o->n;
	return 0;
}

/* Emits what is older than `before`, and more until at most max bytes are left. */
static int emit_before(struct order *o, u64 before, size_t max)
{
	struct view v;
	size_t i;
	int err;

	if (!o->n)
		return 0;
	err = sort_added(o);
	for (i = 0; !err && i < o->n && (o->bytes > max || o->entries[i].time < before); i++) {
		v = view_of(o, o->entries[i].stored);
		err = o->fn(&v, o->arg);
		o->bytes -= sizeof(struct stored) + v.size + ENTRY_BYTES;
		stored__put(o->entries[i].stored);
	}
	memmove(o->entries, o->entries + i, (o->n - i) * sizeof(*o->entries));
	o->n -= i;
	o->sorted = o->sorted > i ? o->sorted - i : 0;
	return err;
}

/* Returns a record of that size at the end of o->block; NULL: no memory. */
static struct stored *reserve(struct order *o, u32 record_size)
{
	size_t size = sizeof(struct stored) + record_size;
	struct block *b = o->block;
	struct stored *s;

	/* records begin at multiples of 8 */
	if (b)
		b->len = (b->len + 7) & ~(size_t)7;
	if (!b || b->len > b->size || b->size - b->len < size) {
		b = malloc(sizeof(*b) + (size > BLOCK_SIZE ? size : BLOCK_SIZE));
		if (!b)
			return NULL;
		b->len = 0;
		b->size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		b->records = 1; /* the order's own reference */
		block__put(o->block);
		o->block = b;
	}
	s = (struct stored *)(b->data + b->len);
	s->size = record_size;
	s->offset = (u16)(b->len / 8);
	return s;
}

static int make_room(struct order *o)
{
	return array__room(o->entries, o->n) ? 0 : -ENOMEM;
}

/* Rows of one event that become records */
struct adding {
	const struct rows *rows;
	const struct schema_event *event;
	struct row_numbers *numbers; /* of each field; unused for texts */
	const struct schema_field *tail; /* NULL: none */
	u16 kind;
};

static void put_text(char *record, const struct adding *a, const struct schema_field *f, u32 i)
{
	u32 len;
	const char *text = rows__text(a->rows, f, i, &len);

	memcpy(record + f->offset, text, f->type == FIELD_TEXT && len > f->size ? f->size : len);
}

/* With constant sizes memcpy is no call. */
static void put_number(char *to, u64 value, u32 size)
{
	if (size == 8)
		memcpy(to, &value, 8);
	else if (size == 4)
		memcpy(to, &value, 4);
	else
		memcpy(to, &value, size);
}

/* Returns the event's index in the kinds, which fits into 16 bits as ids do; -ENOMEM. */
static int kind_of(struct order *o, const struct schema_event *e)
{
	u32 i = 0;

	while (i < o->n_kinds && o->kinds[i] != e)
		i++;
	if (i == o->n_kinds && !array__push(o->kinds, o->n_kinds, e))
		return -ENOMEM;
	return (int)i;
}

static int add_row(struct order *o, const struct adding *a, u32 i)
{
	struct stored *s;
	u64 time;
	u32 len = 0;

	if (a->tail)
		rows__text(a->rows, a->tail, i, &len);
	s = reserve(o, a->event->size + len);
	if (!s || make_room(o))
		return -ENOMEM;
	s->kind = a->kind;
	memset(s->record, 0, a->event->size);
	for (u32 j = 0; j < a->event->n; j++) {
		const struct schema_field *f = &a->event->fields[j];

		if (f->type == FIELD_TEXT || f->type == FIELD_TAIL)
			put_text(s->record, a, f, i);
		else
			put_number(s->record + f->offset, row_numbers__at(&a->numbers[j], i), f->size);
	}
	time = ((const struct event *)s->record)->time;
	o->entries[o->n++] = (struct entry){ time, s };
	o->block->len += sizeof(*s) + s->size;
	o->block->records++;
	o->bytes += sizeof(*s) + s->size + ENTRY_BYTES;
	o->newest = time > o->newest ? time : o->newest;
	return 0;
}

static int add_rows(struct order *o, struct adding *a, u64 from, u64 to)
{
	const struct schema_field *begin = schema_event__field(a->event, a->event->is_span ? "start" : "time");
	u32 i, n = rows__count(a->rows);
	int err = 0;

	for (i = 0; i < a->event->n; i++)
		if (a->event->fields[i].type != FIELD_TEXT && a->event->fields[i].type != FIELD_TAIL)
			a->numbers[i] = rows__numbers(a->rows, &a->event->fields[i]);
	for (i = 0; !err && i < n; i++) {
		u64 at = row_numbers__at(&a->numbers[begin->index], i);

		if (at >= from && at <= to)
			err = add_row(o, a, i);
	}
	return err;
}

int order__add(struct order *o, const struct rows *rows)
{
	return order__add_begun(o, rows, 0, ~0ull);
}

int order__add_begun(struct order *o, const struct rows *rows, u64 from, u64 to)
{
	const struct schema_event *event = rows__event(rows);
	struct adding a = { .rows = rows, .event = event, .numbers = calloc(event->n, sizeof(*a.numbers)) };
	int kind = kind_of(o, event), err = kind < 0 ? kind : a.numbers ? 0 : -ENOMEM;

	if (event->fields[event->n - 1].type == FIELD_TAIL)
		a.tail = &event->fields[event->n - 1];
	a.kind = (u16)kind;
	if (!err)
		err = add_rows(o, &a, from, to);
	free(a.numbers);
	if (!err && o->bytes > MAX_BYTES)
		err = emit_before(o, 0, MAX_BYTES / 4 * 3);
	/* the first entry was the oldest at the last emission */
	if (!err && o->n > 4096 && o->newest > WINDOW + MARGIN && o->entries[0].time < o->newest - WINDOW - MARGIN)
		err = emit_before(o, o->newest - WINDOW, MAX_BYTES);
	return err;
}

int order__finish(struct order *o)
{
	return emit_before(o, ~0ull, 0);
}
