// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/meta.h"
#include "trace/format.h"
#include "trace/head.h"
#include "trace/writer_private.h"

#define WAIT_MAX   500000000ULL /* ns after which a record that waits is written, with all others that wait */
#define ZSTD_LEVEL 1 /* level 3 gains almost nothing on byte planes */

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
	frame__put(frame, FILE_PAYLOAD);
	payload = frame + FRAME_HEADER;
	memcpy(payload, FILE_MAGIC, FILE_MAGIC_SIZE);
	put16(payload + FILE_MAJOR, FORMAT_MAJOR);
	put16(payload + FILE_MINOR, FORMAT_MINOR);
	put32(payload + FILE_HEAD_SIZE, size);
	put32(payload + FILE_HEAD_RAW, raw);
	put64(payload + FILE_HEAD_HASH, XXH64(payload + FILE_PAYLOAD, size, 0));
	put64(payload + FILE_HASH, XXH64(payload, FILE_HASH, 0));
	err = trace_writer__write(w, frame, FRAME_HEADER + FILE_PAYLOAD + size);
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
		w->head_size = w->offset;
	}
	if (err)
		trace_writer__free(w);
	else
		*out = w;
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
	struct refused *r = &w->refused[size >= sizeof(*e) ? FAMILY_INDEX(e->id) : 0];
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
		w->waiting_since = w->now; /* the last tick; the record is younger, so it never waits too long */
	w->events++;
	w->raw += size;
	w->last_time = e.time > w->last_time ? e.time : w->last_time;
	return w->rows == CHUNK_ROWS_MAX || w->raw >= CHUNK_RAW_MAX ? trace_writer__cut_chunk(w) : 0;
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
	u64 bytes = w->chunk.capacity + w->index.capacity;

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
	return now >= w->waiting_since + WAIT_MAX ? trace_writer__cut_chunk(w) : 0;
}

int trace_writer__flush(struct trace_writer *w)
{
	return trace_writer__cut_chunk(w);
}

/* Writes a meta_loss record for the refused records of each family. */
static void report_refused(struct trace_writer *w)
{
	u32 i;

	for (i = 0; i < FAMILY_MAX; i++) {
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
	err = trace_writer__cut_chunk(w);
	return err ? err : trace_writer__write_index(w, INDEX_FINAL);
}

int trace_writer__rewind(struct trace_writer *w)
{
	if (!w->error && (ftruncate(w->fd, (off_t)w->head_size) || lseek(w->fd, (off_t)w->head_size, SEEK_SET) < 0))
		w->error = -errno;
	w->offset = w->head_size;
	w->chunks = w->index_before = 0;
	w->finished = false;
	memset(w->refused, 0, sizeof(w->refused));
	strings__forget(&w->strings);
	return w->error;
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
