// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/meta.h"
#include "trace/format.h"
#include "trace/head.h"
#include "trace/kind.h"
#include "trace/strings.h"
#include "trace/writer.h"

#define WAIT_MAX     500000000ULL /* ns that a record waits for more of its kind */
#define MEMORY_KEPT  (32U << 20) /* buffers kept between chunks */
#define MEMORY_SMALL (32U << 10) /* of a kind, which is kept in any case */
#define IDLE_PART    8 /* a buffer is idle while less than this part of it is in use */
#define IDLE_CHUNKS \
	32 /* after so many it is given back: each kind has its busy moments, and their sum would only grow */
#define ZSTD_LEVEL   1 /* 3 gains next to nothing on byte planes */
#define FAMILIES_MAX 256

/* Records of one family that were refused, for a meta_loss record at the end. */
struct refused {
	u64 count, first, last;
};

struct trace_writer {
	int fd;
	int error; /* of the first failed write; nothing is written after it */
	const struct schema *schema;
	struct kind **kinds; /* one an event of the schema, made when it first occurs */
	struct kind **by_id[256]; /* [id >> 8][id & 0xff]: points into kinds */
	ZSTD_CCtx *zstd;
	struct bytes chunk; /* as it is written */
	u32 chunk_idle; /* see is_idle() */
	struct bytes index; /* payload of the index frame to come, from its entries on */
	u32 index_chunks;
	u64 index_before; /* offset of the index frame before it */
	struct strings strings;
	struct refused refused[FAMILIES_MAX];
	u64 rows, raw; /* in the chunk to come */
	u64 chunks, events, offset;
	u64 now; /* of the last tick */
	u64 waiting_since; /* 0: not known yet */
	u64 last_time; /* of the records so far */
	bool finished;
	void (*listener)(const void *record, u32 size, void *arg); /* NULL: none */
	void *listener_arg;
};

/* Everything or an error. What was written of a chunk that failed is cut off again where that can be done. */
static int write_all(struct trace_writer *w, const u8 *at, size_t n)
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

static void put_frame(u8 *to, u32 payload)
{
	put32(to, FRAME_MAGIC);
	put32(to + 4, payload);
}

static int write_head(struct trace_writer *w, const char *json)
{
	size_t raw = strlen(json), bound = ZSTD_compressBound(raw), size;
	u8 *frame, *payload;
	int err;

	if (raw > HEAD_RAW_MAX)
		return -E2BIG;
	frame = calloc(1, FRAME_HEADER + FILE_PAYLOAD + bound);
	if (!frame)
		return -ENOMEM;
	size = ZSTD_compress(frame + FRAME_HEADER + FILE_PAYLOAD, bound, json, raw, ZSTD_LEVEL);
	if (ZSTD_isError(size)) {
		free(frame);
		return -ENOMEM;
	}
	put_frame(frame, FILE_PAYLOAD);
	payload = frame + FRAME_HEADER;
	memcpy(payload, FILE_MAGIC, FILE_MAGIC_SIZE);
	put16(payload + FILE_MAJOR, FORMAT_MAJOR);
	put16(payload + FILE_MINOR, FORMAT_MINOR);
	put32(payload + FILE_HEAD_SIZE, size);
	put32(payload + FILE_HEAD_RAW, raw);
	put64(payload + FILE_HEAD_HASH, XXH64(payload + FILE_PAYLOAD, size, 0));
	put64(payload + FILE_HASH, XXH64(payload, FILE_HASH, 0));
	err = write_all(w, frame, FRAME_HEADER + FILE_PAYLOAD + size);
	free(frame);
	return err;
}

static int prepare(struct trace_writer *w)
{
	u32 i;

	w->kinds = calloc(w->schema->n_events ? w->schema->n_events : 1, sizeof(*w->kinds));
	w->zstd = ZSTD_createCCtx();
	if (!w->kinds || !w->zstd || ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
		return -ENOMEM;
	for (i = 0; i < w->schema->n_events; i++) {
		struct kind ***slot = &w->by_id[w->schema->events[i].id >> 8];

		if (!*slot)
			*slot = calloc(256, sizeof(**slot));
		if (!*slot)
			return -ENOMEM;
	}
	return 0;
}

int trace_writer__create(struct trace_writer **out, int fd, const struct schema *schema, const struct trace_head *head)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	char *json;
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->schema = schema;
	w->last_time = head->monotonic;
	err = prepare(w);
	if (!err) {
		json = head__print(schema, head);
		err = json ? write_head(w, json) : -ENOMEM;
		free(json);
	}
	if (err)
		trace_writer__free(w);
	else
		*out = w;
	return err;
}

/* An index frame of what was written since the last one. */
static int write_index(struct trace_writer *w, u32 flags)
{
	u32 payload = INDEX_ENTRIES + w->index.n + INDEX_FOOTER;
	u64 offset = w->offset;
	u8 *at;
	int err;

	w->chunk.n = 0;
	err = bytes__reserve(&w->chunk, FRAME_HEADER + payload);
	if (err)
		return err;
	put_frame(w->chunk.at, payload);
	at = w->chunk.at + FRAME_HEADER;
	put32(at, INDEX_TAG);
	put32(at + INDEX_CHUNKS, w->index_chunks);
	put32(at + INDEX_FLAGS, flags);
	put32(at + INDEX_FLAGS + 4, 0);
	put64(at + INDEX_BEFORE, w->index_before);
	if (w->index.n)
		memcpy(at + INDEX_ENTRIES, w->index.at, w->index.n);
	at += INDEX_ENTRIES + w->index.n;
	put64(at, XXH64(w->chunk.at + FRAME_HEADER, payload - INDEX_FOOTER, 0));
	put32(at + 8, FRAME_HEADER + payload);
	put32(at + 12, INDEX_END_MAGIC);
	err = write_all(w, w->chunk.at, FRAME_HEADER + payload);
	w->index_before = offset;
	w->index_chunks = 0;
	w->index.n = 0;
	return err;
}

/* Adds the chunk in w->chunk, with n kinds, to the future index. */
static int remember_chunk(struct trace_writer *w, u32 n)
{
	const u8 *payload = w->chunk.at + FRAME_HEADER;
	u8 *to;
	u32 i;
	int err = bytes__reserve(&w->index, INDEX_CHUNK + n * INDEX_KIND);

	if (err)
		return err;
	to = w->index.at + w->index.n;
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

/* One kind's frame behind those in w->chunk, and its entry in the header at the chunk's start. */
static int add_kind(struct trace_writer *w, struct kind *k, u32 i)
{
	size_t at = w->chunk.n, size;
	u8 *entry;
	int err = kind__compress(k, w->zstd, &w->chunk);

	if (err)
		return err;
	size = w->chunk.n - at;
	entry = w->chunk.at + FRAME_HEADER + CHUNK_ENTRIES + i * KIND_ENTRY;
	memset(entry, 0, KIND_ENTRY);
	put16(entry + KIND_ID, k->event->id);
	put32(entry + KIND_ROWS, k->rows);
	put32(entry + KIND_CONTENT, kind__content_size(k));
	put32(entry + KIND_COMPRESSED, size);
	put32(entry + KIND_RAW, k->raw);
	put64(entry + KIND_FIRST, k->first);
	put64(entry + KIND_LAST, k->last);
	put64(entry + KIND_HASH, XXH64(w->chunk.at + at, size, 0));
	return 0;
}

static void finish_chunk_header(struct trace_writer *w, u32 n)
{
	u8 *payload = w->chunk.at + FRAME_HEADER;
	u32 size = CHUNK_ENTRIES + n * KIND_ENTRY + 8, i;
	u64 first = ~0ULL, last = 0;

	for (i = 0; i < n; i++) {
		const u8 *entry = payload + CHUNK_ENTRIES + i * KIND_ENTRY;

		first = get64(entry + KIND_FIRST) < first ? get64(entry + KIND_FIRST) : first;
		last = get64(entry + KIND_LAST) > last ? get64(entry + KIND_LAST) : last;
	}
	put_frame(w->chunk.at, size);
	put32(payload, CHUNK_TAG);
	put32(payload + CHUNK_KINDS, n);
	put64(payload + CHUNK_NUMBER, w->chunks);
	put64(payload + CHUNK_FIRST, first);
	put64(payload + CHUNK_LAST, last);
	put64(payload + CHUNK_BODY, w->chunk.n - FRAME_HEADER - size);
	put64(payload + size - 8, XXH64(payload, size - 8, 0));
}

/* Counts the chunks in a row that used little of a buffer; true: it is to be given back. */
static bool is_idle(size_t used, size_t room, u32 *idle)
{
	*idle = room > MEMORY_SMALL && used < room / IDLE_PART ? *idle + 1 : 0;
	if (*idle < IDLE_CHUNKS)
		return false;
	*idle = 0;
	return true;
}

/* Empties the buffers, and gives them back where kinds that were busy once hold too much. */
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
		idle = is_idle(k->raw, kind__memory(k), &k->idle);
		kind__reset(k);
		if (idle || memory > MEMORY_KEPT)
			kind__trim(k);
	}
	if (is_idle(w->chunk.n, w->chunk.room, &w->chunk_idle))
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

static int cut_chunk(struct trace_writer *w)
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
		err = write_all(w, w->chunk.at, w->chunk.n);
	if (!err) {
		w->chunks++;
		w->waiting_since = 0;
		reset_kinds(w);
		if (w->index_chunks == INDEX_MAX)
			err = write_index(w, 0);
	}
	w->error = err;
	return err;
}

static struct kind *find_kind(struct trace_writer *w, u16 id)
{
	struct kind **slot = w->by_id[id >> 8];
	const struct schema_event *e;

	if (!slot)
		return NULL;
	slot += id & 0xff;
	if (!*slot) {
		e = schema__event_by_id(w->schema, id);
		if (!e)
			return NULL;
		*slot = kind__new(e);
		w->kinds[e - w->schema->events] = *slot;
		if (!*slot)
			w->error = -ENOMEM;
	}
	return *slot;
}

static int refuse(struct trace_writer *w, const struct event *e, u32 size)
{
	struct refused *r = &w->refused[size >= sizeof(*e) ? EVENT_FAMILY(e->id) : 0];
	u64 time = size >= sizeof(*e) ? e->time : w->last_time;

	r->first = !r->count || time < r->first ? time : r->first;
	r->last = !r->count || time > r->last ? time : r->last;
	r->count++;
	return -EINVAL;
}

int trace_writer__append(struct trace_writer *w, const void *record, u32 size)
{
	struct event e;
	struct kind *k;
	int err;

	if (w->error)
		return w->error;
	memcpy(&e, record, size < sizeof(e) ? size : sizeof(e));
	k = size >= sizeof(e) ? find_kind(w, e.id) : NULL;
	if (!k)
		return w->error ? w->error : refuse(w, &e, size);
	if (w->fd < 0) {
		w->events++;
		w->last_time = e.time > w->last_time ? e.time : w->last_time;
		return 0;
	}
	err = kind__append(k, record, size);
	if (err == -EINVAL)
		return refuse(w, &e, size);
	if (err) {
		w->error = err;
		return err;
	}
	if (!w->rows++)
		w->waiting_since = w->now; /* it came after that tick: the wait is at most what this says */
	w->events++;
	w->raw += size;
	w->last_time = e.time > w->last_time ? e.time : w->last_time;
	return w->rows == CHUNK_ROWS_MAX || w->raw >= CHUNK_RAW_MAX ? cut_chunk(w) : 0;
}

u32 trace_writer__intern(struct trace_writer *w, const char *text, size_t len)
{
	u8 record[sizeof(struct meta_string) + TEXT_MAX];
	struct event e = { .time = w->last_time, .id = ID_meta_string };
	bool fresh;
	u32 id;

	len = text ? strnlen(text, len < TEXT_MAX ? len : TEXT_MAX) : 0;
	if (!len || w->error || !schema__event_by_id(w->schema, ID_meta_string))
		return 0;
	id = strings__intern(&w->strings, text, len, &fresh);
	if (!id)
		w->error = -ENOMEM;
	if (!fresh && !w->listener)
		return id;
	memcpy(record, &e, sizeof(e));
	memcpy(record + offsetof(struct meta_string, string), &id, sizeof(id));
	memcpy(record + offsetof(struct meta_string, text), text, len);
	if (fresh)
		trace_writer__append(w, record, offsetof(struct meta_string, text) + len);
	if (w->listener)
		w->listener(record, offsetof(struct meta_string, text) + len, w->listener_arg);
	return id;
}

void trace_writer__bound_texts(struct trace_writer *w, u32 max)
{
	w->strings.max = max / 2;
}

void trace_writer__forget_texts(struct trace_writer *w)
{
	strings__forget(&w->strings);
}

const struct strings *trace_writer__texts(const struct trace_writer *w)
{
	return &w->strings;
}

u64 trace_writer__buffers(const struct trace_writer *w)
{
	u64 bytes = w->chunk.room + w->index.room;

	for (u32 i = 0; i < w->schema->n_events; i++)
		bytes += w->kinds[i] ? kind__memory(w->kinds[i]) : 0;
	return bytes;
}

void trace_writer__listen(struct trace_writer *w, void (*fn)(const void *record, u32 size, void *arg), void *arg)
{
	w->listener = fn;
	w->listener_arg = arg;
}

int trace_writer__tick(struct trace_writer *w, u64 now)
{
	w->now = now;
	if (w->error || !w->rows)
		return w->error;
	if (!w->waiting_since)
		w->waiting_since = now;
	return now >= w->waiting_since + WAIT_MAX ? cut_chunk(w) : 0;
}

int trace_writer__flush(struct trace_writer *w)
{
	return cut_chunk(w);
}

/* What was refused is lost, and losses are records. */
static void report_refused(struct trace_writer *w)
{
	u32 i;

	for (i = 0; i < FAMILIES_MAX; i++) {
		struct meta_loss loss = {
			.event = { .time = w->last_time, .id = ID_meta_loss },
			.first = w->refused[i].first,
			.last = w->refused[i].last,
			.count = w->refused[i].count,
			.family = i,
			.reason = LOSS_REFUSED,
		};

		if (loss.count)
			trace_writer__append(w, &loss, sizeof(loss));
	}
}

int trace_writer__finish(struct trace_writer *w)
{
	int err;

	if (w->finished)
		return w->error;
	w->finished = true;
	report_refused(w);
	err = cut_chunk(w);
	return err ? err : write_index(w, INDEX_FINAL);
}

u64 trace_writer__refused(const struct trace_writer *w, u32 family, u64 *first, u64 *last)
{
	*first = w->refused[family].first;
	*last = w->refused[family].last;
	return w->refused[family].count;
}

u64 trace_writer__bytes(const struct trace_writer *w)
{
	return w->offset;
}

u64 trace_writer__events(const struct trace_writer *w)
{
	return w->events;
}

void trace_writer__free(struct trace_writer *w)
{
	u32 i;

	if (!w)
		return;
	for (i = 0; w->kinds && i < w->schema->n_events; i++)
		kind__free(w->kinds[i]);
	for (i = 0; i < 256; i++)
		free(w->by_id[i]);
	free(w->kinds);
	ZSTD_freeCCtx(w->zstd);
	bytes__free(&w->chunk);
	bytes__free(&w->index);
	strings__free(&w->strings);
	free(w);
}
