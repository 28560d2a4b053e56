// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <cjson/cJSON.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd_errors.h>

#include "core/meta.h"
#include "schema/schema_build.h"
#include "trace/format.h"
#include "trace/head.h"
#include "trace/reader_priv.h"
#include "util/map.h"
#include "util/array.h"
#include "util/file.h"

#define STRINGS_MAX	 (1U << 26) /* number of interned strings */
#define STRING_BYTES_MAX (1ULL << 30) /* of interned strings; below 4 GiB, as text_entry.at has 32 bits */
/*
 * A file of n bytes may have STRING_BYTES_ALWAYS + STRING_BYTES_OF_FILE * n bytes of strings: recordings compress far
 * less than 256-fold, so only a crafted file exceeds it.
 */
#define STRING_BYTES_ALWAYS  (64ULL << 20)
#define STRING_BYTES_OF_FILE 256

struct opening {
	struct trace *t;
	char *err;
	size_t err_len;
};

#define FAIL(o, code, ...) schema__fail((o)->err, (o)->err_len, code, __VA_ARGS__)

static int read_failed(struct opening *o, int err)
{
	if (err == -EBADMSG)
		return FAIL(o, err, "the file is truncated, or its head is damaged");
	return FAIL(o, err, "cannot read: %s", strerror(-err));
}

/* Returns a descriptor or negative errno; opens regular files only. */
int trace__open_file(const char *path, char *err, size_t err_len)
{
	int fd = file__open_regular(path);

	if (fd == -EINVAL)
		return schema__fail(err, err_len, -ENOMSG, "not a sonde trace: not a regular file");
	return fd < 0 ? schema__fail(err, err_len, fd, "cannot open: %s", strerror(-fd)) : fd;
}

static int measure(struct opening *o)
{
	struct stat st;

	if (fstat(o->t->fd, &st))
		return FAIL(o, -errno, "cannot stat: %s", strerror(errno));
	o->t->size = st.st_size;
	return o->t->size ? 0 : FAIL(o, -ENOMSG, "not a sonde trace: the file is empty");
}

static int read_head_frame(struct opening *o, u8 *first, struct bytes *frame)
{
	const u8 *payload = first + FRAME_HEADER;
	struct trace *t = o->t;
	u64 want = FRAME_HEADER + FILE_PAYLOAD;
	u32 magic_end = FRAME_HEADER + FILE_MAGIC_SIZE, size;
	u16 major;
	int err = trace_file__read(t, 0, first, t->size < want ? t->size : want);

	if (err)
		return read_failed(o, err);
	if (t->size < magic_end || get32(first) != FRAME_MAGIC || memcmp(payload, FILE_MAGIC, FILE_MAGIC_SIZE))
		return FAIL(o, -ENOMSG, "not a sonde trace");
	if (t->size < want)
		return read_failed(o, -EBADMSG);
	major = get16(payload + FILE_MAJOR);
	if (major > FORMAT_MAJOR)
		return FAIL(o, -EPROTO, "the file has format version %u, this sonde reads up to %u: use a newer sonde",
			    major, FORMAT_MAJOR);
	t->minor = get16(payload + FILE_MINOR);
	if (get32(first + 4) != FILE_PAYLOAD || major != FORMAT_MAJOR ||
	    get64(payload + FILE_HASH) != XXH64(payload, FILE_HASH, 0))
		return read_failed(o, -EBADMSG);
	size = get32(payload + FILE_HEAD_SIZE);
	if (size > t->size - want || get32(payload + FILE_HEAD_RAW) > HEAD_RAW_MAX)
		return read_failed(o, -EBADMSG);
	err = bytes__reserve(frame, size ? size : 1);
	if (!err)
		err = trace_file__read(t, want, frame->data, size);
	if (!err && XXH64(frame->data, size, 0) != get64(payload + FILE_HEAD_HASH))
		err = -EBADMSG;
	frame->n = size;
	t->body = want + size;
	return err ? read_failed(o, err) : 0;
}

static bool json_failed;

static void *json_malloc(size_t size)
{
	void *p = malloc(size);

	json_failed |= !p;
	return p;
}

/* cJSON does not report whether the text is invalid or there was no memory. */
static int parse_head(struct opening *o, const char *text, size_t size)
{
	cJSON_Hooks hooks = { json_malloc, free };

	json_failed = false;
	cJSON_InitHooks(&hooks);
	o->t->json = cJSON_ParseWithLength(text, size);
	cJSON_InitHooks(NULL);
	if (o->t->json)
		return 0;
	return json_failed ? read_failed(o, -ENOMEM) : FAIL(o, -EBADMSG, "the file's head is not JSON");
}

static int read_head(struct opening *o)
{
	u8 first[FRAME_HEADER + FILE_PAYLOAD] = {};
	struct bytes frame = {}, text = {};
	struct trace *t = o->t;
	size_t raw, size;
	int err = read_head_frame(o, first, &frame);

	raw = get32(first + FRAME_HEADER + FILE_HEAD_RAW);
	if (!err && bytes__reserve(&text, raw + 1))
		err = read_failed(o, -ENOMEM);
	if (!err) {
		size = ZSTD_decompress(text.data, raw, frame.data, frame.n);
		if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
			err = read_failed(o, -ENOMEM);
		else if (ZSTD_isError(size) || size != raw)
			err = read_failed(o, -EBADMSG);
	}
	if (!err)
		err = parse_head(o, (const char *)text.data, raw);
	if (!err)
		err = schema__from_json(&t->schema, cJSON_GetObjectItemCaseSensitive(t->json, "schema"), o->err,
					o->err_len);
	if (!err)
		head__parse(&t->head, t->json);
	bytes__free(&frame);
	bytes__free(&text);
	/* whichever errno the schema returned for what it could not parse, the file is damaged */
	return err && err != -ENOMEM && err != -ENOMSG && err != -EPROTO && err != -EIO ? -EBADMSG : err;
}

/* A recording holds a lock on its trace. */
static bool is_locked(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

static int find_chunks(struct opening *o)
{
	struct trace *t = o->t;
	int err = chunk_table__from_index(&t->table, t);
	bool damaged = err == -EBADMSG;

	t->summary.has_index = !err;
	t->summary.being_recorded = err == -ENOENT && is_locked(t->fd);
	if (err == -ENOENT || err == -EBADMSG)
		err = chunk_table__scan(&t->table, t);
	if (err)
		return FAIL(o, err, "cannot read: %s", strerror(-err));
	t->table.faults += damaged;
	return 0;
}

static int summarize(struct opening *o)
{
	struct trace *t = o->t;
	struct trace_summary *s = &t->summary;
	u32 n = t->schema->n_events, from, to;
	size_t i;

	t->kinds = calloc(n ? n : 1, sizeof(*t->kinds));
	if (!t->kinds)
		return FAIL(o, -ENOMEM, "no memory");
	for (i = 0; i < t->table.n; i++) {
		const struct chunk *c = &t->table.chunks[i];

		s->first = !i || c->first < s->first ? c->first : s->first;
		s->last = c->last > s->last ? c->last : s->last;
	}
	for (i = 0; i < t->table.n_kinds; i++) {
		const struct chunk_kind *k = &t->table.kinds[i];
		const struct schema_event *e = schema__event_by_id(t->schema, k->id);

		if (!e)
			continue;
		t->kinds[e - t->schema->events].event = e;
		t->kinds[e - t->schema->events].events += k->rows;
		t->kinds[e - t->schema->events].compressed += k->compressed;
		t->kinds[e - t->schema->events].raw += k->raw;
		s->events += k->rows;
		s->raw_bytes += k->raw;
	}
	for (from = to = 0; from < n; from++)
		if (t->kinds[from].event)
			t->kinds[to++] = t->kinds[from];
	t->n_kinds = to;
	s->chunks = t->table.n;
	s->file_bytes = t->size;
	s->torn_bytes = t->table.torn;
	return 0;
}

static u64 string_bytes_max(const struct trace *t)
{
	return t->size < STRING_BYTES_MAX / STRING_BYTES_OF_FILE ?
		       STRING_BYTES_ALWAYS + STRING_BYTES_OF_FILE * t->size :
		       STRING_BYTES_MAX;
}

/* Returns the slot of the id, or the free one for it. There must be a free slot. */
static u32 *text_slot(const struct trace *t, u32 id)
{
	/* a seeded hash, because an untrusted file chooses its ids */
	u32 mask = t->n_text_slots - 1, i = (u32)map__hash_bytes(&id, sizeof(id)) & mask;

	while (t->text_slots[i] && t->texts[t->text_slots[i] - 1].id != id)
		i = (i + 1) & mask;
	return &t->text_slots[i];
}

/* Makes room for one more text. */
static int grow_texts(struct trace *t)
{
	u32 n_slots = t->n_text_slots ? t->n_text_slots * 2 : 512, *slots;

	if (!array__room(t->texts, t->n_texts))
		return -ENOMEM;
	if (t->n_texts < t->n_text_slots / 2)
		return 0;
	if (t->n_texts >= STRINGS_MAX)
		return -E2BIG;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->text_slots);
	t->text_slots = slots;
	t->n_text_slots = n_slots;
	for (u32 i = 0; i < t->n_texts; i++)
		*text_slot(t, t->texts[i].id) = i + 1;
	return 0;
}

/* Adds texts. Recordings write one text per id; of several the first counts. */
static int add_texts(const struct rows *rows, void *arg)
{
	const struct schema_field *id = schema_event__field(rows__event(rows), "string");
	FIELDS_OF(rows__event(rows), text);
	struct trace *t = arg;
	u32 i, len, *slot;
	int err = 0;

	for (i = 0; !err && i < rows__count(rows); i++) {
		const char *at = rows__text(rows, text, i, &len);
		struct text_entry e = { (u32)rows__u64(rows, id, i), (u32)t->text.n };

		err = grow_texts(t);
		slot = err ? NULL : text_slot(t, e.id);
		if (err || *slot)
			continue;
		if (t->text.n + len >= string_bytes_max(t))
			return -E2BIG;
		err = bytes__add(&t->text, at, len);
		if (!err)
			err = bytes__add(&t->text, "", 1);
		t->texts[t->n_texts++] = e;
		*slot = t->n_texts;
	}
	return err;
}

static int load_texts(struct opening *o)
{
	int err = trace__read_kind(o->t, "meta_string", add_texts, o->t);

	if (err == -E2BIG)
		return FAIL(
			o, -EBADMSG,
			"the file has more than %llu MiB of strings, or more than %u strings: no recording of this size has so many",
			string_bytes_max(o->t) >> 20, STRINGS_MAX);
	if (err)
		return FAIL(o, err, "cannot read the file's strings: %s", strerror(-err));
	/* Each trace__read() counts the damaged chunks that it reads, so these would be counted twice. */
	o->t->damaged_texts = o->t->damaged;
	o->t->damaged = 0;
	return 0;
}

static int read_all_chunks(struct opening *o)
{
	int err = find_chunks(o);

	if (!err)
		err = summarize(o);
	return err ? err : load_texts(o);
}

/* Frees what is known of the records. */
static void forget_chunks(struct trace *t)
{
	chunk_table__free(&t->table);
	bytes__free(&t->text);
	free(t->texts);
	free(t->text_slots);
	free(t->kinds);
}

int trace__reopen(struct trace *t, char *err, size_t err_len)
{
	struct opening o = { t, err, err_len };
	int res;

	forget_chunks(t);
	t->texts = NULL;
	t->text_slots = NULL;
	t->kinds = NULL;
	t->n_texts = t->n_text_slots = t->n_kinds = 0;
	t->damaged = t->damaged_texts = 0;
	t->summary = (struct trace_summary){};
	res = measure(&o);
	return res ? res : read_all_chunks(&o);
}

int trace__open_fd(struct trace **out, int fd, char *err, size_t err_len)
{
	struct opening o = { calloc(1, sizeof(struct trace)), err, err_len };
	int res;

	*out = NULL;
	if (!o.t) {
		close(fd);
		return FAIL(&o, -ENOMEM, "no memory");
	}
	o.t->fd = fd;
	res = measure(&o);
	if (!res)
		res = read_head(&o);
	if (!res)
		res = read_all_chunks(&o);
	if (res)
		trace__close(o.t);
	else
		*out = o.t;
	return res;
}

int trace__open(struct trace **out, const char *path, char *err, size_t err_len)
{
	int fd = trace__open_file(path, err, err_len);

	*out = NULL;
	return fd < 0 ? fd : trace__open_fd(out, fd, err, err_len);
}

void trace__close(struct trace *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	forget_chunks(t);
	schema__free(t->schema);
	cJSON_Delete(t->json);
	free(t);
}

const struct schema *trace__schema(const struct trace *t)
{
	return t->schema;
}

const struct trace_head *trace__head(const struct trace *t)
{
	return &t->head;
}

const struct trace_summary *trace__summary(const struct trace *t)
{
	return &t->summary;
}

const struct kind_summary *trace__kinds(const struct trace *t, u32 *n)
{
	*n = t->n_kinds;
	return t->kinds;
}

bool trace__has(const struct trace *t, const char *kind)
{
	for (u32 i = 0; i < t->n_kinds; i++)
		if (!strcmp(t->kinds[i].event->name, kind))
			return true;
	return false;
}

const char *trace__string(const struct trace *t, u32 id)
{
	u32 at = id && t->n_texts ? *text_slot(t, id) : 0;

	return at ? (const char *)t->text.data + t->texts[at - 1].at : "";
}

u64 trace__damaged(const struct trace *t)
{
	return (t->damaged ? t->damaged : t->damaged_texts) + t->table.faults;
}
