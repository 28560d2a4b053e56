// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An event a line, in order of time (a span's end).
 *
 * A file has its events by chunk and in it by kind, and nothing waits longer
 * than a second in the writer: two seconds of lines, put in order, are in order.
 * A trace that has more of them than memory we allow comes out nearly in order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "model/line.h"

#define WINDOW	  2000000000ull /* ns */
#define MAX_BYTES (64u << 20)

/* The lines of one call of rows(), one after the other. */
struct block {
	char *text;
	size_t len; /* what is in text once the stream was flushed */
	u32 lines; /* not yet written */
};

struct line {
	u64 time;
	u64 number; /* keeps the file's order among equals */
	struct block *block;
	size_t offset, len;
};

struct text {
	struct line_context context;
	struct line *lines;
	size_t n, allocated;
	size_t bytes;
	u64 number, newest;
};

static int compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static void block__put(struct block *b)
{
	if (--b->lines)
		return;
	free(b->text);
	free(b);
}

/* Writes lines older than `before`, and at least `least` of them. */
static int write_out(struct text *t, FILE *out, u64 before, size_t least)
{
	const struct line *line;
	size_t i;

	if (!t->n)
		return 0;
	qsort(t->lines, t->n, sizeof(*t->lines), compare);
	for (i = 0; i < t->n && (i < least || t->lines[i].time < before); i++) {
		line = &t->lines[i];
		fwrite(line->block->text + line->offset, 1, line->len, out);
		t->bytes -= line->len + sizeof(*line);
		block__put(line->block);
	}
	memmove(t->lines, t->lines + i, (t->n - i) * sizeof(*t->lines));
	t->n -= i;
	return ferror(out) ? -EIO : 0;
}

static int add_line(struct text *t, struct block *b, FILE *memory, const struct view *v, u64 time)
{
	struct line *more, line = { .time = time, .number = t->number++, .block = b, .offset = b->len };

	if (t->n == t->allocated) {
		more = realloc(t->lines, (t->allocated ? t->allocated * 2 : 1024) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->lines = more;
		t->allocated = t->allocated ? t->allocated * 2 : 1024;
	}
	line__print(memory, &t->context, v);
	if (fflush(memory))
		return -ENOMEM;
	line.len = b->len - line.offset;
	t->lines[t->n++] = line;
	b->lines++;
	t->bytes += line.len + sizeof(line);
	t->newest = time > t->newest ? time : t->newest;
	return 0;
}

static int begin(struct export *e)
{
	struct text *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->context = (struct line_context){ trace__schema(e->trace), e->names, e->facts->start };
	e->data = t;
	line__heading(e->out);
	return 0;
}

static int add_rows(struct text *t, const struct rows *rows)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *time = schema_event__field(v.event, "time");
	struct block *b = calloc(1, sizeof(*b));
	FILE *memory = b ? open_memstream(&b->text, &b->len) : NULL;
	int err = memory ? 0 : -ENOMEM;

	if (!memory) {
		free(b);
		return err;
	}
	b->lines = 1; /* ours */
	for (; !err && v.i < rows__count(rows); v.i++)
		err = add_line(t, b, memory, &v, rows__u64(rows, time, v.i));
	if (fclose(memory) && !err)
		err = -ENOMEM;
	block__put(b);
	return err;
}

static int rows(struct export *e, const struct rows *rows)
{
	struct text *t = e->data;
	int err = add_rows(t, rows);

	if (!err && t->bytes > MAX_BYTES)
		err = write_out(t, e->out, 0, t->n / 2);
	/* the first line is the oldest since the last time this was done: waiting longer spares sorting */
	if (!err && t->n > 4096 && t->newest > 2 * WINDOW && t->lines[0].time < t->newest - 2 * WINDOW)
		err = write_out(t, e->out, t->newest - WINDOW, 0);
	return err;
}

static int end(struct export *e)
{
	struct text *t = e->data;
	int err;

	if (!t)
		return 0;
	err = write_out(t, e->out, 0, t->n);
	free(t->lines);
	free(t);
	return err;
}

EXPORTER(text) = {
	.name = "text",
	.doc = "an event a line, in order of time",
	.begin = begin,
	.rows = rows,
	.end = end,
};
