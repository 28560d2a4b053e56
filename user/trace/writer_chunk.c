// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes chunks: the frames of the kinds, their header, and now and then an index. */
#include "trace/writer_private.h"

#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

#include "trace/format.h"

#define MEMORY_RETAINED (32U << 20) /* bytes of buffers that are retained between chunks */
#define MEMORY_SMALL	(32U << 10) /* bytes of a kind's buffers that are always retained */
/* A buffer of which IDLE_CHUNKS chunks used less than 1/IDLE_PART is freed: otherwise each kind's buffer only grows. */
#define IDLE_PART   4
#define IDLE_CHUNKS 32

int trace_writer__write(struct trace_writer *w, const u8 *at, size_t n)
{
	size_t done = 0;

	while (w->fd >= 0 && done < n) {
		ssize_t res = write(w->fd, at + done, n - done);

		if (res < 0 && errno == EINTR)
			continue;
		if (res <= 0) {
			w->error = res < 0 ? -errno : -EIO;
			if (done && !ftruncate(w->fd, w->offset))
				lseek(w->fd, w->offset, SEEK_SET);
			return w->error;
		}
		done += res;
	}
	w->offset += n;
	return 0;
}

void frame__put(u8 *to, u32 payload)
{
	put32(to, FRAME_MAGIC);
	put32(to + 4, payload);
}

int trace_writer__write_index(struct trace_writer *w, u32 flags)
{
	u32 payload = INDEX_ENTRIES + w->index.n + INDEX_FOOTER;
	u64 offset = w->offset;
	u8 *at;
	int err;

	w->chunk.n = 0;
	err = bytes__reserve(&w->chunk, FRAME_HEADER + payload);
	if (err)
		return err;
	frame__put(w->chunk.data, payload);
	at = w->chunk.data + FRAME_HEADER;
	put32(at, INDEX_TAG);
	put32(at + INDEX_CHUNKS, w->index_chunks);
	put32(at + INDEX_FLAGS, flags);
	put32(at + INDEX_FLAGS + 4, 0);
	put64(at + INDEX_BEFORE, w->index_before);
	if (w->index.n)
		memcpy(at + INDEX_ENTRIES, w->index.data, w->index.n);
	at += INDEX_ENTRIES + w->index.n;
	put64(at, XXH64(w->chunk.data + FRAME_HEADER, payload - INDEX_FOOTER, 0));
	put32(at + 8, FRAME_HEADER + payload);
	put32(at + 12, INDEX_END_MAGIC);
	err = trace_writer__write(w, w->chunk.data, FRAME_HEADER + payload);
	w->index_before = offset;
	w->index_chunks = 0;
	w->index.n = 0;
	return err;
}

/* Adds the chunk in w->chunk, with n kinds, to the next index frame. */
static int remember_chunk(struct trace_writer *w, u32 n)
{
	const u8 *payload = w->chunk.data + FRAME_HEADER;
	u8 *to;
	u32 i;
	int err = bytes__reserve(&w->index, INDEX_CHUNK + n * INDEX_KIND);

	if (err)
		return err;
	to = w->index.data + w->index.n;
	put64(to, w->offset);
	put64(to + 8, get64(payload + CHUNK_FIRST));
	put64(to + 16, get64(payload + CHUNK_LAST));
	put32(to + 24, w->chunk.n);
	put32(to + 28, n);
	put64(to + 32, w->chunks);
	to += INDEX_CHUNK;
	for (i = 0; i < n; i++, to += INDEX_KIND) {
		const u8 *entry = payload + CHUNK_ENTRIES + i * KIND_ENTRY;

		memcpy(to, entry + KIND_ID, 8); /* and the rows */
		memcpy(to + 8, entry + KIND_COMPRESSED, 8); /* and the raw size */
	}
	w->index.n += INDEX_CHUNK + n * INDEX_KIND;
	w->index_chunks++;
	return 0;
}

/* Appends one kind's frame to w->chunk, and fills its entry in the header at the chunk's start. */
static int add_kind(struct trace_writer *w, struct kind *k, u32 i)
{
	size_t at = w->chunk.n, size;
	u8 *entry;
	int err = kind__compress(k, w->zstd, &w->chunk);

	if (err)
		return err;
	size = w->chunk.n - at;
	entry = w->chunk.data + FRAME_HEADER + CHUNK_ENTRIES + i * KIND_ENTRY;
	memset(entry, 0, KIND_ENTRY);
	put16(entry + KIND_ID, k->event->id);
	put32(entry + KIND_ROWS, k->rows);
	put32(entry + KIND_CONTENT, kind__content_size(k));
	put32(entry + KIND_COMPRESSED, size);
	put32(entry + KIND_RAW, k->raw);
	put64(entry + KIND_FIRST, k->first);
	put64(entry + KIND_LAST, k->last);
	put64(entry + KIND_HASH, XXH64(w->chunk.data + at, size, 0));
	return 0;
}

static void finish_chunk_header(struct trace_writer *w, u32 n)
{
	u8 *payload = w->chunk.data + FRAME_HEADER;
	u32 size = CHUNK_ENTRIES + n * KIND_ENTRY + 8, i;
	u64 first = ~0ULL, last = 0;

	for (i = 0; i < n; i++) {
		const u8 *entry = payload + CHUNK_ENTRIES + i * KIND_ENTRY;

		first = get64(entry + KIND_FIRST) < first ? get64(entry + KIND_FIRST) : first;
		last = get64(entry + KIND_LAST) > last ? get64(entry + KIND_LAST) : last;
	}
	frame__put(w->chunk.data, size);
	put32(payload, CHUNK_TAG);
	put32(payload + CHUNK_KINDS, n);
	put64(payload + CHUNK_NUMBER, w->chunks);
	put64(payload + CHUNK_FIRST, first);
	put64(payload + CHUNK_LAST, last);
	put64(payload + CHUNK_BODY, w->chunk.n - FRAME_HEADER - size);
	put64(payload + size - 8, XXH64(payload, size - 8, 0));
}

/* Notes what a chunk used of a buffer; returns whether to free the buffer. */
static bool is_idle(struct buffer_use *use, size_t used, size_t room)
{
	bool idle;

	if (used > use->peak)
		use->peak = used;
	if (++use->chunks < IDLE_CHUNKS)
		return false;
	idle = room > MEMORY_SMALL && use->peak < room / IDLE_PART;
	*use = (struct buffer_use){};
	return idle;
}

/* Empties the kinds' buffers, and frees those of kinds that are no longer busy, or all if they take too much. */
static void reset_kinds(struct trace_writer *w)
{
	size_t memory = 0;
	u32 i;

	for (i = 0; i < w->schema->n_events; i++)
		memory += w->kinds[i] ? kind__memory(w->kinds[i]) : 0;
	for (i = 0; i < w->schema->n_events; i++) {
		struct kind *k = w->kinds[i];
		bool idle;

		if (!k)
			continue;
		idle = is_idle(&k->use, kind__content_size(k), kind__memory(k));
		kind__reset(k);
		if (idle || memory > MEMORY_RETAINED)
			kind__trim(k);
	}
	if (is_idle(&w->chunk_use, w->chunk.n, w->chunk.capacity))
		bytes__free(&w->chunk);
	w->rows = 0;
	w->raw = 0;
}

static int compress_chunk(struct trace_writer *w, u32 *n_out)
{
	u32 i, n = 0;
	int err = 0;

	for (i = 0; i < w->schema->n_events; i++)
		n += w->kinds[i] && w->kinds[i]->rows;
	*n_out = n;
	w->chunk.n = 0;
	err = bytes__reserve(&w->chunk, FRAME_HEADER + CHUNK_ENTRIES + n * KIND_ENTRY + 8);
	w->chunk.n = FRAME_HEADER + CHUNK_ENTRIES + n * KIND_ENTRY + 8;
	for (i = 0, n = 0; i < w->schema->n_events && !err; i++) {
		if (!w->kinds[i] || !w->kinds[i]->rows)
			continue;
		err = kind__settle(w->kinds[i]);
		if (!err)
			err = add_kind(w, w->kinds[i], n++);
	}
	return err;
}

int trace_writer__cut_chunk(struct trace_writer *w)
{
	u32 n;
	int err;

	if (w->error || !w->rows)
		return w->error;
	err = compress_chunk(w, &n);
	if (!err) {
		finish_chunk_header(w, n);
		err = remember_chunk(w, n);
	}
	if (!err)
		err = trace_writer__write(w, w->chunk.data, w->chunk.n);
	if (!err) {
		w->chunks++;
		w->waiting_since = 0;
		reset_kinds(w);
		if (w->index_chunks == INDEX_MAX)
			err = trace_writer__write_index(w, 0);
	}
	w->error = err;
	return err;
}
