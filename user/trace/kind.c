// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Collects the records of one kind of event for a chunk: records are staged as rows, blocks of rows become columns, and
 * the columns are compressed.
 */
#include "trace/format.h"
#include "trace/kind.h"

#define STAGE_BYTES 16384 /* a part of the first-level cache */
/* Two u64 that are compared at once, with vector instructions if the machine has them. */
typedef u64 lane __attribute__((vector_size(16)));

#define FLUSH_ROWS 1024 /* rows from which a Huffman table for each plane saves bytes */

static enum column_transform first_transform(const struct schema_event *e, const struct schema_field *f)
{
	if (f->index == 0)
		return COLUMN_DELTA;
	if (e->is_span && !strcmp(f->name, "start"))
		return COLUMN_BEFORE;
	return field__is_text(f) ? COLUMN_PLAIN : COLUMN_DICT;
}

struct kind *kind__new(const struct schema_event *event)
{
	struct kind *k = calloc(1, sizeof(*k));
	u32 i;

	if (!k)
		return NULL;
	k->event = event;
	k->row_size = (event->size + sizeof(u32) + sizeof(lane) - 1) / sizeof(lane) * sizeof(lane);
	k->stage_room = STAGE_BYTES / k->row_size;
	if (k->stage_room > COLUMN_BLOCK)
		k->stage_room = COLUMN_BLOCK;
	if (!k->stage_room)
		k->stage_room = 1;
	k->columns = calloc(event->n, sizeof(*k->columns));
	k->texts = calloc(event->n, sizeof(*k->texts));
	k->stage = aligned_alloc(sizeof(lane), (size_t)(k->stage_room + 1) * k->row_size);
	if (!k->columns || !k->texts || !k->stage) {
		kind__free(k);
		return NULL;
	}
	memset(k->stage, 0, (size_t)(k->stage_room + 1) * k->row_size);
	k->varied = k->stage + (size_t)k->stage_room * k->row_size;
	for (i = 0; i < event->n; i++) {
		const struct schema_field *f = &event->fields[i];

		column__init(&k->columns[i], field__is_text(f) ? 4 : f->size, first_transform(event, f));
	}
	kind__reset(k);
	return k;
}

void kind__free(struct kind *k)
{
	u32 i;

	if (!k)
		return;
	for (i = 0; i < k->event->n; i++) {
		if (k->columns)
			column__trim(&k->columns[i]);
		if (k->texts)
			bytes__free(&k->texts[i]);
	}
	bytes__free(&k->head);
	free(k->columns);
	free(k->texts);
	free(k->stage);
	free(k);
}

int kind__append(struct kind *k, const void *record, u32 size)
{
	const struct schema_event *e = k->event;
	const struct schema_field *last = &e->fields[e->n - 1];
	u8 *row = k->stage + (size_t)k->staged * k->row_size;
	u32 tail = 0;
	int err;

	if (size != e->size) {
		if (last->type != FIELD_TAIL || size < e->size || size - e->size > TEXT_MAX)
			return -EINVAL;
		/* a producer may round the size up */
		tail = strnlen((const char *)record + e->size, size - e->size);
		err = bytes__add(&k->texts[last->index], (const u8 *)record + e->size, tail);
		if (err)
			return err;
	}
	memcpy(row, record, e->size);
	memcpy(row + e->size, &tail, sizeof(tail));
	k->rows++;
	k->raw += e->size + tail;
	return ++k->staged == k->stage_room ? kind__settle(k) : 0;
}

#define GATHER(type)                                           \
	do {                                                   \
		for (i = 0; i < n; i++, from += k->row_size) { \
			type v;                                \
                                                               \
			memcpy(&v, from, sizeof(v));           \
			to[i] = v;                             \
		}                                              \
	} while (0)

/* Records are in the host's byte order, which is that of traces on every machine that sonde supports. */
static void gather(const struct kind *k, u32 offset, u32 size, u64 *to)
{
	const u8 *from = k->stage + offset;
	u32 n = k->staged, i;

	switch (size) {
	case 1:
		GATHER(u8);
		break;
	case 2:
		GATHER(u16);
		break;
	case 4:
		GATHER(u32);
		break;
	default:
		GATHER(u64);
	}
}

/* Determines for all fields at once which differ between rows, because most hold one value in most blocks. */
static void find_varied(struct kind *k)
{
	u32 lanes = k->row_size / sizeof(lane), i, j;
	lane *varied = (lane *)k->varied;

	for (j = 0; j < lanes; j++) {
		const lane *row = (const lane *)k->stage + j;
		lane first = *row, bits = {};

		for (i = 1; i < k->staged; i++)
			bits |= row[(size_t)i * lanes] ^ first;
		varied[j] = bits;
	}
}

static bool is_varied(const struct kind *k, u32 offset, u32 size)
{
	return get_number(k->varied + offset, size);
}

static int gather_text(struct kind *k, const struct schema_field *f, u64 *lengths)
{
	struct bytes *text = &k->texts[f->index];
	const u8 *from = k->stage + f->offset;
	u32 i;
	int err;

	for (i = 0; i < k->staged; i++, from += k->row_size) {
		lengths[i] = strnlen((const char *)from, f->size);
		err = bytes__add(text, from, lengths[i]);
		if (err)
			return err;
	}
	return 0;
}

/* Returns whether the moments are shortly before the times of their records: then the differences take fewer bytes. */
static bool near_time(const u64 *values, const u64 *time, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (time[i] - values[i] >= values[i] / 4)
			return false;
	return true;
}

/* In older traces, moments and durations both have unit `ns`; near_time distinguishes them. */
static bool is_moment(const struct schema_field *f)
{
	return !strcmp(f->unit, "moment") || !strcmp(f->unit, "ns");
}

static int settle_field(struct kind *k, const struct schema_field *f, const u64 *time)
{
	struct column *c = &k->columns[f->index];
	u64 values[COLUMN_BLOCK];
	u32 n = k->staged, i;

	if (f->type == FIELD_TEXT) {
		int err = gather_text(k, f, values);

		if (err)
			return err;
	} else if (f->type == FIELD_TAIL) {
		gather(k, k->event->size, sizeof(u32), values);
	} else if ((c->transform == COLUMN_DICT || c->transform == COLUMN_PLAIN) && c->rows &&
		   !is_varied(k, f->offset, f->size)) {
		return column__push_same(c, get_number(k->stage + f->offset, f->size), n);
	} else {
		gather(k, f->offset, f->size, values);
		if (!c->rows && f->size == 8 && c->transform != COLUMN_BEFORE && f->index && is_moment(f) &&
		    near_time(values, time, n))
			c->transform = COLUMN_BEFORE;
	}
	if (k->event->is_span && c->first == COLUMN_BEFORE)
		for (i = 0; i < n; i++)
			k->first = values[i] < k->first ? values[i] : k->first;
	return column__push(c, values, time, n);
}

int kind__settle(struct kind *k)
{
	u64 time[COLUMN_BLOCK];
	u32 i;
	int err;

	if (!k->staged)
		return 0;
	find_varied(k);
	gather(k, offsetof(struct event, time), sizeof(u64), time);
	for (i = 0; i < k->staged; i++) {
		k->first = time[i] < k->first ? time[i] : k->first;
		k->last = time[i] > k->last ? time[i] : k->last;
	}
	for (i = 0; i < k->event->n; i++) {
		err = settle_field(k, &k->event->fields[i], time);
		if (err)
			return err;
	}
	k->staged = 0;
	return 0;
}

size_t kind__content_size(const struct kind *k)
{
	size_t size = 0;
	u32 i;

	for (i = 0; i < k->event->n; i++) {
		const struct column *c = &k->columns[i];

		size += column__head_size(c) + (size_t)__builtin_popcount(c->mask) * c->rows + k->texts[i].n;
	}
	return size;
}

static int compress_part(ZSTD_CCtx *zstd, struct bytes *out, const void *from, size_t n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { from, n, 0 };
	size_t left;
	int err;

	do {
		ZSTD_outBuffer to;

		err = bytes__reserve(out, 4096);
		if (err)
			return err;
		to = (ZSTD_outBuffer){ out->data, out->capacity, out->n };
		left = ZSTD_compressStream2(zstd, &to, &in, end);
		if (ZSTD_isError(left))
			return -ENOMEM; /* with valid parameters there is no other error */
		out->n = to.pos;
	} while (in.pos < in.size || (end != ZSTD_e_continue && left));
	return 0;
}

static int write_heads(struct kind *k)
{
	u32 i, size;
	int err;

	k->head.n = 0;
	for (i = 0; i < k->event->n; i++) {
		size = column__head_size(&k->columns[i]);
		err = bytes__reserve(&k->head, size);
		if (err)
			return err;
		column__write_head(&k->columns[i], k->head.data + k->head.n);
		k->head.n += size;
	}
	return 0;
}

int kind__compress(struct kind *k, ZSTD_CCtx *zstd, struct bytes *out)
{
	/* Planes are unrelated, so each gets its own block and with it its own Huffman table. */
	ZSTD_EndDirective each = k->rows >= FLUSH_ROWS ? ZSTD_e_flush : ZSTD_e_continue;
	size_t size = kind__content_size(k);
	u32 i, p;
	int err;

	if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd, size)))
		return -ENOMEM;
	err = bytes__reserve(out, ZSTD_compressBound(size) + 4096);
	if (!err)
		err = write_heads(k);
	if (!err)
		err = compress_part(zstd, out, k->head.data, k->head.n, each);
	for (i = 0; i < k->event->n && !err; i++) {
		const struct column *c = &k->columns[i];

		for (p = 0; p < 8 && !err; p++)
			if (c->mask >> p & 1)
				err = compress_part(zstd, out, c->planes[p], c->rows, each);
		if (!err && k->texts[i].n)
			err = compress_part(zstd, out, k->texts[i].data, k->texts[i].n, each);
	}
	return err ? err : compress_part(zstd, out, NULL, 0, ZSTD_e_end);
}

void kind__reset(struct kind *k)
{
	u32 i;

	for (i = 0; i < k->event->n; i++) {
		column__reset(&k->columns[i]);
		k->texts[i].n = 0;
	}
	k->rows = 0;
	k->staged = 0;
	k->raw = 0;
	k->first = ~0ULL;
	k->last = 0;
}

void kind__trim(struct kind *k)
{
	u32 i;

	for (i = 0; i < k->event->n; i++) {
		column__trim(&k->columns[i]);
		bytes__free(&k->texts[i]);
	}
	bytes__free(&k->head);
}

size_t kind__memory(const struct kind *k)
{
	size_t n = k->head.capacity;
	u32 i;

	for (i = 0; i < k->event->n; i++)
		n += column__memory(&k->columns[i]) + k->texts[i].capacity;
	return n;
}
