// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the table of a trace's chunks from the index at its end. */
#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

#include "trace/format.h"
#include "trace/reader_priv.h"

int trace_file__read(const struct trace *t, u64 offset, void *to, size_t n)
{
	u8 *at = to;

	while (n) {
		ssize_t res = pread(t->fd, at, n, offset);

		if (res < 0 && errno == EINTR)
			continue;
		if (res <= 0)
			return res < 0 ? -errno : -EBADMSG;
		at += res;
		n -= res;
		offset += res;
	}
	return 0;
}

void chunk_table__free(struct chunk_table *table)
{
	free(table->chunks);
	free(table->kinds);
	memset(table, 0, sizeof(*table));
}

/* Makes room for one more element. 0 or -ENOMEM. */
#define GROW(array, n, room)                                                    \
	({                                                                      \
		size_t want_ = (room) ? (room) << 1 : 64;                       \
		void *more_ = (array);                                          \
                                                                                \
		if ((n) == (room)) {                                            \
			more_ = reallocarray((array), want_, sizeof(*(array))); \
			if (more_) {                                            \
				(array) = more_;                                \
				(room) = want_;                                 \
			}                                                       \
		}                                                               \
		more_ ? 0 : -ENOMEM;                                            \
	})

static int add_kind(struct chunk_table *table, u16 id, u32 rows, u32 compressed, u32 raw)
{
	int err = GROW(table->kinds, table->n_kinds, table->kinds_room);

	if (!err)
		table->kinds[table->n_kinds++] = (struct chunk_kind){ id, rows, compressed, raw };
	return err;
}

static int add_chunk(struct chunk_table *table, const struct chunk *c)
{
	int err = GROW(table->chunks, table->n, table->capacity);

	if (err)
		return err;
	table->chunks[table->n] = *c;
	table->chunks[table->n++].kinds = table->n_kinds;
	return 0;
}

int chunk_header__parse(struct chunk_header *h, const u8 *frame, u32 size)
{
	const u8 *payload = frame + FRAME_HEADER;
	u64 body = 0;
	u32 n, i;

	if (size < FRAME_HEADER + CHUNK_ENTRIES + 8 || get32(frame) != FRAME_MAGIC ||
	    get32(frame + 4) != size - FRAME_HEADER || get32(payload) != CHUNK_TAG)
		return -EBADMSG;
	n = get32(payload + CHUNK_KINDS);
	if (n > CHUNK_KINDS_MAX || size != FRAME_HEADER + CHUNK_ENTRIES + n * KIND_ENTRY + 8 ||
	    get64(frame + size - 8) != XXH64(payload, size - FRAME_HEADER - 8, 0))
		return -EBADMSG;
	h->header_size = size;
	h->entries = payload + CHUNK_ENTRIES;
	for (i = 0; i < n; i++) {
		const u8 *entry = h->entries + i * KIND_ENTRY;

		if (!get32(entry + KIND_ROWS) || get32(entry + KIND_ROWS) > CHUNK_ROWS_MAX)
			return -EBADMSG;
		body += get32(entry + KIND_COMPRESSED);
	}
	if (body != get64(payload + CHUNK_BODY) || body > UINT32_MAX - size)
		return -EBADMSG;
	h->chunk = (struct chunk){
		.number = get64(payload + CHUNK_NUMBER),
		.first = get64(payload + CHUNK_FIRST),
		.last = get64(payload + CHUNK_LAST),
		.size = size + body,
		.n = n,
	};
	return 0;
}

int chunk_table__add(struct chunk_table *table, const struct chunk_header *h)
{
	int err = add_chunk(table, &h->chunk);
	u32 i;

	for (i = 0; i < h->chunk.n && !err; i++) {
		const u8 *entry = h->entries + i * KIND_ENTRY;

		err = add_kind(table, get16(entry + KIND_ID), get32(entry + KIND_ROWS), get32(entry + KIND_COMPRESSED),
			       get32(entry + KIND_RAW));
	}
	return err;
}

static int index_chunk(struct chunk_table *table, const struct trace *t, const u8 **at, const u8 *end)
{
	u64 after = table->n ? table->chunks[table->n - 1].offset + table->chunks[table->n - 1].size : t->body;
	const u8 *p = *at;
	struct chunk c;
	u32 i;
	int err;

	if (end - p < INDEX_CHUNK)
		return -EBADMSG;
	c = (struct chunk){ .offset = get64(p),
			    .first = get64(p + 8),
			    .last = get64(p + 16),
			    .size = get32(p + 24),
			    .n = get32(p + 28),
			    .number = get64(p + 32) };
	p += INDEX_CHUNK;
	if (c.offset < after || c.offset > t->size || c.size > t->size - c.offset || c.n > CHUNK_KINDS_MAX ||
	    c.size < FRAME_HEADER + CHUNK_ENTRIES + c.n * KIND_ENTRY + 8 || (size_t)(end - p) < c.n * INDEX_KIND)
		return -EBADMSG;
	err = add_chunk(table, &c);
	for (i = 0; i < c.n && !err; i++, p += INDEX_KIND) {
		if (!get32(p + 4) || get32(p + 4) > CHUNK_ROWS_MAX)
			return -EBADMSG;
		err = add_kind(table, get16(p), get32(p + 4), get32(p + 8), get32(p + 12));
	}
	*at = p;
	return err;
}

int index_frame__read(struct bytes *b, const struct trace *t, u64 offset, u32 size)
{
	const u8 *payload, *footer;
	int err;

	if (size < FRAME_HEADER + INDEX_ENTRIES + INDEX_FOOTER || size > INDEX_FRAME_MAX || size > t->size - offset)
		return -EBADMSG;
	b->n = 0;
	err = bytes__reserve(b, size);
	if (!err)
		err = trace_file__read(t, offset, b->data, size);
	if (err)
		return err;
	b->n = size;
	payload = b->data + FRAME_HEADER;
	footer = b->data + size - INDEX_FOOTER;
	if (get32(b->data) != FRAME_MAGIC || get32(b->data + 4) != size - FRAME_HEADER || get32(payload) != INDEX_TAG ||
	    get64(footer) != XXH64(payload, footer - payload, 0) || get32(footer + 8) != size ||
	    get32(footer + 12) != INDEX_END_MAGIC)
		return -EBADMSG;
	return 0;
}

static int parse_index(struct chunk_table *table, const struct trace *t, const struct bytes *b)
{
	const u8 *payload = b->data + FRAME_HEADER, *at = payload + INDEX_ENTRIES, *end = b->data + b->n - INDEX_FOOTER;
	u32 n = get32(payload + INDEX_CHUNKS), i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = index_chunk(table, t, &at, end);
	return !err && at != end ? -EBADMSG : err;
}

/* Collects the offsets of all index frames, from the last one, which ends the file, back to the first. */
static int index_chain(struct bytes *offsets, struct bytes *b, const struct trace *t)
{
	u64 offset, before;
	u8 end[8];
	u32 size;
	int err;

	if (t->size - t->body < FRAME_HEADER + INDEX_ENTRIES + INDEX_FOOTER)
		return -ENOENT;
	err = trace_file__read(t, t->size - sizeof(end), end, sizeof(end));
	if (err)
		return err;
	size = get32(end);
	if (get32(end + 4) != INDEX_END_MAGIC)
		return -ENOENT;
	if (size > t->size - t->body)
		return -EBADMSG;
	offset = t->size - size;
	err = index_frame__read(b, t, offset, size);
	if (!err && !(get32(b->data + FRAME_HEADER + INDEX_FLAGS) & INDEX_FINAL))
		err = -ENOENT; /* the recording was killed just after an intermediate index */
	while (!err) {
		err = bytes__add(offsets, &offset, sizeof(offset));
		before = get64(b->data + FRAME_HEADER + INDEX_BEFORE);
		if (err || !before)
			break;
		if (before < t->body || before >= offset)
			return -EBADMSG;
		offset = before;
		err = trace_file__read(t, offset, end, sizeof(end));
		if (!err)
			err = get32(end + 4) > INDEX_FRAME_MAX ?
				      -EBADMSG :
				      index_frame__read(b, t, offset, get32(end + 4) + FRAME_HEADER);
	}
	return err;
}

int chunk_table__from_index(struct chunk_table *table, const struct trace *t)
{
	struct bytes offsets = {}, b = {};
	size_t i;
	int err = index_chain(&offsets, &b, t);

	for (i = offsets.n / sizeof(u64); i && !err; i--) {
		u64 offset;
		u8 head[FRAME_HEADER];

		memcpy(&offset, offsets.data + (i - 1) * sizeof(u64), sizeof(u64));
		err = trace_file__read(t, offset, head, sizeof(head));
		if (!err && get32(head + 4) > INDEX_FRAME_MAX)
			err = -EBADMSG;
		if (!err)
			err = index_frame__read(&b, t, offset, get32(head + 4) + FRAME_HEADER);
		if (!err)
			err = parse_index(table, t, &b);
	}
	bytes__free(&offsets);
	bytes__free(&b);
	if (err)
		chunk_table__free(table);
	return err;
}
