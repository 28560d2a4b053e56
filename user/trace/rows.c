// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads, filters and reads the rows of one kind in one chunk. */
#include <errno.h>
#include <xxhash.h>

#include "trace/format.h"
#include "trace/kind.h"
#include "trace/reader_priv.h"
#include "util/saturate.h"

void rows__release(struct rows *r)
{
	ZSTD_freeDCtx(r->zstd);
	bytes__free(&r->header);
	bytes__free(&r->compressed);
	bytes__free(&r->content);
	bytes__free(&r->arena);
	bytes__free(&r->selection);
	bytes__free(&r->column_room);
	for (int i = 0; i < 3; i++)
		bytes__free(&r->cut[i]);
	for (int i = 0; i < TASK_FIELDS_MAX; i++)
		bytes__free(&r->tasks[i]);
}

static int buffer(struct bytes *b, size_t n)
{
	b->n = 0;
	return bytes__reserve(b, n ? n : 1);
}

int rows__chunk_header(struct rows *r, const struct trace *t, const struct chunk *c, struct chunk_header *h)
{
	u32 size = FRAME_HEADER + CHUNK_ENTRIES + c->n * KIND_ENTRY + 8;
	int err = buffer(&r->header, size);

	if (!err)
		err = trace_file__read(t, c->offset, r->header.data, size);
	if (!err)
		err = chunk_header__parse(h, r->header.data, size);
	if (!err && (h->chunk.size != c->size || h->chunk.number != c->number))
		err = -EBADMSG;
	return err;
}

static int decompress(struct rows *r, const struct trace *t, const u8 *entry, u64 offset)
{
	u32 compressed = get32(entry + KIND_COMPRESSED), content = get32(entry + KIND_CONTENT);
	size_t size;
	int err;

	if (content > CONTENT_MAX)
		return -EBADMSG;
	if (!r->zstd)
		r->zstd = ZSTD_createDCtx();
	err = r->zstd ? buffer(&r->compressed, compressed) : -ENOMEM;
	if (!err)
		err = trace_file__read(t, offset, r->compressed.data, compressed);
	if (err)
		return err;
	if (XXH64(r->compressed.data, compressed, 0) != get64(entry + KIND_HASH))
		return -EBADMSG;
	err = buffer(&r->content, content);
	if (err)
		return err;
	size = ZSTD_decompressDCtx(r->zstd, r->content.data, content, r->compressed.data, compressed);
	return ZSTD_isError(size) || size != content ? -EBADMSG : 0;
}

/* Computes the offsets of a text column's rows in its bytes, which begin at *at. */
static int lay_out_text(struct column_data *c, const struct schema_field *f, u32 rows, const u8 **at, const u8 *end)
{
	u32 max = f->type == FIELD_TEXT ? f->size : TEXT_MAX, i;
	u64 sum = 0, length;

	/* lengths are decoded into the array of the offsets, which has one element more */
	if (c->view.transform == COLUMN_BEFORE || c->view.transform == COLUMN_DELTA)
		return -EBADMSG;
	column_view__decode(&c->view, c->values, NULL, rows);
	for (i = 0; i < rows; i++) {
		length = c->values[i];
		c->values[i] = sum;
		if (length > max)
			return -EBADMSG;
		sum += length;
	}
	c->values[rows] = sum;
	if (sum > (size_t)(end - *at))
		return -EBADMSG;
	c->text = *at;
	*at += sum;
	c->decoded = true;
	c->is_constant = false;
	return 0;
}

static int lay_out(struct rows *r)
{
	const u8 *at = r->content.data, *end = at + r->content.n;
	const struct schema_event *e = r->event;
	size_t stored = 0, next = 0;
	u32 i;
	int err = 0;

	for (i = 0; i < e->n && !err; i++) {
		const struct schema_field *f = &e->fields[i];
		struct column_data *c = &r->columns[i];

		memset(c, 0, sizeof(*c));
		err = column_view__head(&c->view, field__is_text(f) ? 4 : f->size, &at, end);
		if (!err && !field__is_text(f))
			c->is_constant = column_view__constant(&c->view, &c->constant);
		stored += !c->is_constant;
	}
	if (!err && r->columns[0].view.transform == COLUMN_BEFORE)
		err = -EBADMSG;
	if (!err)
		err = buffer(&r->arena, stored * (r->n_unfiltered + 1) * sizeof(u64));
	for (i = 0; i < e->n && !err; i++) {
		struct column_data *c = &r->columns[i];

		err = column_view__planes(&c->view, r->n_unfiltered, &at, end);
		if (c->is_constant || err)
			continue;
		c->values = (u64 *)r->arena.data + next;
		next += r->n_unfiltered + 1;
		if (field__is_text(&e->fields[i]))
			err = lay_out_text(c, &e->fields[i], r->n_unfiltered, &at, end);
	}
	return !err && at != end ? -EBADMSG : err;
}

static u64 extend(u64 v, u32 size)
{
	u32 shift = 64 - 8 * size;

	return (u64)((s64)(v << shift) >> shift);
}

static void decode(const struct rows *r, u32 index)
{
	struct column_data *c = &r->columns[index];
	const struct schema_field *f = &r->event->fields[index];
	const u64 *time = c->view.transform == COLUMN_BEFORE ? rows__values(r, 0) : NULL;
	u64 constant;
	u32 i;

	if (time == NULL && c->view.transform == COLUMN_BEFORE) {
		/* all rows have the same time, so there is no array of times */
		constant = r->columns[0].constant;
		c->view.transform = COLUMN_PLAIN;
		column_view__decode(&c->view, c->values, NULL, r->n_unfiltered);
		for (i = 0; i < r->n_unfiltered; i++)
			c->values[i] = constant - c->values[i];
	} else {
		column_view__decode(&c->view, c->values, time, r->n_unfiltered);
	}
	if (f->size < 8 && f->is_signed)
		for (i = 0; i < r->n_unfiltered; i++)
			c->values[i] = extend(c->values[i], f->size);
	c->decoded = true;
}

const u64 *rows__values(const struct rows *r, u32 index)
{
	struct column_data *c = &r->columns[index];

	if (c->is_constant)
		return NULL;
	if (!c->decoded)
		decode(r, index);
	return c->values;
}

u64 *rows__own_values(struct rows *r, u32 index, struct bytes *room)
{
	struct column_data *c = &r->columns[index];
	const u64 *values = rows__values(r, index);
	u64 *own;

	room->n = 0;
	if (bytes__reserve(room, (r->n_unfiltered + 1) * sizeof(u64)))
		return NULL;
	own = (u64 *)room->data;
	for (u32 i = 0; i < r->n_unfiltered; i++)
		own[i] = values ? values[i] : c->constant;
	c->values = own;
	c->is_constant = false;
	c->decoded = true;
	return own;
}

int rows__load(struct rows *r, const struct trace *t, const struct schema_event *e, const u8 *entry, u64 offset)
{
	int err;
	u32 i;

	r->event = e;
	r->n_unfiltered = r->count = get32(entry + KIND_ROWS);
	r->selected = NULL;
	if ((u64)r->n_unfiltered * e->size > ROWS_BYTES_MAX)
		return -EBADMSG;
	err = buffer(&r->column_room, e->n * sizeof(struct column_data));
	if (!err)
		err = decompress(r, t, entry, offset);
	if (err)
		return err;
	r->columns = (struct column_data *)r->column_room.data;
	r->content.n = get32(entry + KIND_CONTENT);
	err = lay_out(r);
	for (i = 0; i < e->n && !err; i++)
		if (r->columns[i].is_constant && e->fields[i].size < 8 && e->fields[i].is_signed)
			r->columns[i].constant = extend(r->columns[i].constant, e->fields[i].size);
	return err;
}

static u64 raw_value(const struct rows *r, u32 index, u32 row)
{
	const struct column_data *c = &r->columns[index];

	if (c->is_constant)
		return c->constant;
	if (!c->decoded)
		decode(r, index);
	return c->values[row];
}

/* Of the fields that each event and each span begins with, which the schema has checked */
enum { FIELD_PID = 1, FIELD_TID = 2, FIELD_START = 7 };

static bool in_time(const struct rows *r, const struct trace *t, const struct trace_filter *f, int start, u32 row)
{
	u64 end = raw_value(r, 0, row), begin = start < 0 ? end : raw_value(r, start, row);

	if (windows__leave_out(t, begin, end))
		return false;
	if (f->to && begin >= f->to)
		return false;
	return end > f->from || begin >= f->from;
}

int rows__select(struct rows *r, const struct trace *t, const struct trace_filter *f, const u8 *entry)
{
	bool by_time = get64(entry + KIND_FIRST) < f->from || (f->to && get64(entry + KIND_LAST) >= f->to) ||
		       (t->n_windows > 1 && windows__apply(t, f, r->event));
	int start = r->event->is_span ? FIELD_START : -1;
	u32 i, n = 0;
	int err;

	if (!by_time && !f->pids.n && !f->tids.n)
		return 0;
	err = buffer(&r->selection, r->n_unfiltered * sizeof(u32));
	if (err)
		return err;
	r->selected = (u32 *)r->selection.data;
	for (i = 0; i < r->n_unfiltered; i++) {
		if ((f->pids.n && !trace_ids__have(&f->pids, (u32)raw_value(r, FIELD_PID, i))) ||
		    (f->tids.n && !trace_ids__have(&f->tids, (u32)raw_value(r, FIELD_TID, i))) ||
		    (by_time && !in_time(r, t, f, start, i)))
			continue;
		r->selected[n++] = i;
	}
	r->count = n;
	return 0;
}

const struct schema_event *rows__event(const struct rows *r)
{
	return r->event;
}

u32 rows__count(const struct rows *r)
{
	return r->count;
}

static u64 value_at(const struct rows *r, const struct schema_field *f, u32 i)
{
	return raw_value(r, f->index, r->selected ? r->selected[i] : i);
}

struct row_numbers rows__numbers(const struct rows *r, const struct schema_field *f)
{
	const u64 *list = rows__values(r, f->index);

	return (struct row_numbers){ list, r->columns[f->index].constant, r->selected };
}

static double float_of(u64 bits, u32 size)
{
	u32 low = bits;
	double d;
	float s;

	if (size == 4) {
		memcpy(&s, &low, sizeof(s));
		return s;
	}
	memcpy(&d, &bits, sizeof(d));
	return d;
}

s64 rows__s64(const struct rows *r, const struct schema_field *f, u32 i)
{
	u64 v;

	if (!f || field__is_text(f))
		return 0;
	v = value_at(r, f, i);
	return f->type == FIELD_FLOAT ? saturate__s64(float_of(v, f->size)) : (s64)v;
}

double rows__double(const struct rows *r, const struct schema_field *f, u32 i)
{
	u64 v;

	if (!f || field__is_text(f))
		return 0;
	v = value_at(r, f, i);
	if (f->type == FIELD_FLOAT)
		return float_of(v, f->size);
	return f->is_signed ? (double)(s64)v : (double)v;
}

const char *rows__text(const struct rows *r, const struct schema_field *f, u32 i, u32 *len)
{
	const struct column_data *c;

	*len = 0;
	if (!f || !field__is_text(f))
		return "";
	c = &r->columns[f->index];
	i = r->selected ? r->selected[i] : i;
	*len = c->values[i + 1] - c->values[i];
	return (const char *)c->text + c->values[i];
}
