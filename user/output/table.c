// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct value *table__row(const struct table *t, u32 row)
{
	return t->cells + (size_t)row * t->n_columns;
}

void table__add_row(struct table *t, const struct value *values, size_t n)
{
	struct value *cells;
	u32 i, rows;

	assert(!t->n_columns || n == t->n_columns);
	if (t->failed || t->drops_rows)
		return;
	if (t->n_rows == t->allocated) {
		rows = t->allocated ? t->allocated * 2 : 16;
		cells = realloc(t->cells, (size_t)rows * t->n_columns * sizeof(*cells));
		if (!cells) {
			t->failed = true;
			return;
		}
		t->cells = cells;
		t->allocated = rows;
	}
	cells = table__row(t, t->n_rows++);
	for (i = 0; i < t->n_columns; i++) {
		assert(values[i].type == VALUE_NONE || values[i].type == t->columns[i].type);
		cells[i] = values[i];
		if (values[i].type != VALUE_TEXT)
			continue;
		cells[i].text = strdup(values[i].text);
		if (!cells[i].text) {
			cells[i] = V_NONE;
			t->failed = true;
		}
	}
}

void table__insert(struct table *t, u32 at, const struct column *column,
		   struct value (*fn)(const struct value *row, void *arg), void *arg)
{
	size_t n = t->n_columns, after = n - at;
	struct column *columns = calloc(n + 1, sizeof(*columns));
	struct value *cells = realloc(t->cells, ((size_t)t->allocated * (n + 1) + 1) * sizeof(*cells));
	struct value *row = calloc(n + 1, sizeof(*row));

	if (cells)
		t->cells = cells;
	if (!columns || !cells || !row) {
		free(columns);
		free(row);
		t->failed = true;
		return;
	}
	memcpy(columns, t->columns, at * sizeof(*columns));
	columns[at] = *column;
	memcpy(columns + at + 1, t->columns + at, after * sizeof(*columns));
	/* Starts with the last row: a widened row then overwrites only rows that were moved already. */
	for (u32 i = t->n_rows; i-- > 0;) {
		struct value *to = cells + (size_t)i * (n + 1);

		memcpy(row, table__row(t, i), n * sizeof(*row));
		memcpy(to, row, at * sizeof(*to));
		to[at] = fn(row, arg);
		memcpy(to + at + 1, row + at, after * sizeof(*to));
	}
	free(row);
	free(t->own_columns);
	t->columns = t->own_columns = columns;
	t->n_columns++;
}

void table__show(struct table *t, const char *key, enum column_show show)
{
	int at = table__column(t, key);

	assert(at >= 0);
	if (!t->own_columns) {
		t->own_columns = calloc(t->n_columns, sizeof(*t->own_columns));
		if (!t->own_columns) {
			t->failed = true;
			return;
		}
		memcpy(t->own_columns, t->columns, t->n_columns * sizeof(*t->own_columns));
		t->columns = t->own_columns;
	}
	t->own_columns[at].show = show;
}

int table__column(const struct table *t, const char *name)
{
	u32 i;

	for (i = 0; i < t->n_columns; i++) {
		if (!strcasecmp(t->columns[i].key, name))
			return (int)i;
	}
	for (i = 0; i < t->n_columns; i++) {
		if (!strcasecmp(t->columns[i].heading, name))
			return (int)i;
	}
	return -1;
}

static int value__compare(const struct value *a, const struct value *b)
{
	/* An unknown value is less than any other. */
	if (a->type == VALUE_NONE || b->type == VALUE_NONE)
		return (a->type != VALUE_NONE) - (b->type != VALUE_NONE);
	switch (a->type) {
	case VALUE_U64:
		return (a->u > b->u) - (a->u < b->u);
	case VALUE_S64:
		return (a->s > b->s) - (a->s < b->s);
	case VALUE_DOUBLE:
		return (a->d > b->d) - (a->d < b->d);
	default:
		return strcmp(a->text, b->text);
	}
}

struct sort {
	const struct table *table;
	u32 column;
	bool down;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
	u32 i = *(const u32 *)a, j = *(const u32 *)b;
	const struct sort *s = arg;
	int c = value__compare(&table__row(s->table, i)[s->column], &table__row(s->table, j)[s->column]);

	if (c)
		return s->down ? -c : c;
	/* qsort is not stable, so rows with equal values are ordered by their numbers. */
	return (i > j) - (i < j);
}

/* Moves row order[i] to row i, in place, as a table may fill most of the memory. Overwrites order. */
static void arrange(struct table *t, u32 *order, struct value *room)
{
	size_t size = t->n_columns * sizeof(*room);
	u32 i, at, from;

	for (i = 0; i < t->n_rows; i++) {
		if (order[i] == i)
			continue;
		memcpy(room, table__row(t, i), size);
		for (at = i; order[at] != i; at = from) {
			from = order[at];
			memcpy(table__row(t, at), table__row(t, from), size);
			order[at] = at;
		}
		memcpy(table__row(t, at), room, size);
		order[at] = at;
	}
}

int table__sort(struct table *t, const char *column)
{
	struct sort s = { .table = t };
	struct value *room;
	u32 i, *order;
	int found;

	s.down = *column == '-';
	found = table__column(t, column + (*column == '-' || *column == '+'));
	if (found < 0)
		return -ENOENT;
	s.column = (u32)found;
	if (*column != '-' && *column != '+')
		s.down = t->columns[found].type != VALUE_TEXT;
	if (t->n_rows < 2)
		return 0;
	order = malloc(t->n_rows * sizeof(*order));
	room = malloc(t->n_columns * sizeof(*room));
	if (!order || !room) {
		free(order);
		free(room);
		return -ENOMEM;
	}
	for (i = 0; i < t->n_rows; i++)
		order[i] = i;
	qsort_r(order, t->n_rows, sizeof(*order), compare_rows, &s);
	arrange(t, order, room);
	free(order);
	free(room);
	return 0;
}

struct table *report_output__table(struct report_output *out, const char *name, const char *title,
				   const struct column *columns, u32 n_columns)
{
	/* Reports need not check for NULL: without memory they get this table, which takes no rows. */
	static struct table nowhere = { .failed = true };
	struct table **end = &out->tables, *t = calloc(1, sizeof(*t));

	if (!t) {
		out->failed = true;
		return &nowhere;
	}
	t->name = name;
	t->title = title;
	t->columns = columns;
	t->n_columns = n_columns;
	while (*end)
		end = &(*end)->next;
	*end = t;
	return t;
}

struct table *report_output__machine_table(struct report_output *out, const char *name, const char *title,
					   const struct column *columns, u32 n_columns)
{
	struct table *t = report_output__table(out, name, title, columns, n_columns);

	if (t->columns) {
		t->machine_only = true;
		t->drops_rows = out->for_people;
	}
	return t;
}

int report_output__sort(struct report_output *out, const char *column)
{
	struct table *t;
	int err, result = -ENOENT;

	for (t = out->tables; t; t = t->next) {
		err = table__sort(t, column);
		if (err && err != -ENOENT)
			return err;
		if (!err)
			result = 0;
	}
	return result;
}

bool report_output__failed(const struct report_output *out)
{
	const struct table *t;
	bool failed = out->failed;

	for (t = out->tables; t; t = t->next)
		failed |= t->failed;
	return failed;
}

static void table__free(struct table *t)
{
	size_t i;

	for (i = 0; i < (size_t)t->n_rows * t->n_columns; i++) {
		if (t->cells[i].type == VALUE_TEXT)
			free((char *)t->cells[i].text);
	}
	free(t->cells);
	free(t->own_columns);
	free(t);
}

void report_output__free(struct report_output *out)
{
	struct table *t, *next;

	for (t = out->tables; t; t = next) {
		next = t->next;
		table__free(t);
	}
	report_output__free_lines(out);
	memset(out, 0, sizeof(*out));
}
