/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of every field type, for the tests of the trace file. */
#pragma once

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/meta.h"
#include "trace/reader.h"

enum { ID_every = 0x7f01, ID_point = 0x7f02, ID_note = 0x7f03, ID_rare = 0x7f04 };

struct every {
	struct call call;
	u64 when, handle;
	double ratio;
	s64 balance;
	float share;
	s32 shift;
	u32 name_id;
	int colour;
	char comm[16];
	u16 port;
	s16 step;
	u8 level;
	s8 sign;
	char two[2];
};

struct point {
	struct event event;
};

struct note {
	struct event event;
	u32 level;
	char text[];
};

struct rare {
	struct span span;
	char text[];
};

/* A schema in JSON, built from the structs' offsets. */
static inline void support_field(struct cJSON *fields, const char *name, const char *type, u32 size, u32 offset,
				 const char *more, const char *value)
{
	struct cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddStringToObject(o, "type", type);
	cJSON_AddNumberToObject(o, "size", size);
	cJSON_AddNumberToObject(o, "offset", offset);
	if (more)
		cJSON_AddStringToObject(o, more, value);
	cJSON_AddItemToArray(fields, o);
}

#define MEMBER(fields, s, type, member, more, value) \
	support_field(fields, #member, type, sizeof(((s *)0)->member), offsetof(s, member), more, value)
#define TAIL(fields, s, member) support_field(fields, #member, "tail", 0, offsetof(s, member), NULL, NULL)

static inline struct cJSON *support_event(struct cJSON *events, const char *name, u32 id, u32 size, int depth)
{
	struct cJSON *o = cJSON_CreateObject(), *f = cJSON_CreateArray();

	cJSON_AddNumberToObject(o, "id", id);
	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddNumberToObject(o, "size", size);
	cJSON_AddItemToObject(o, "fields", f);
	cJSON_AddItemToArray(events, o);
	MEMBER(f, struct event, "unsigned", time, "unit", "ns");
	MEMBER(f, struct event, "unsigned", pid, NULL, NULL);
	MEMBER(f, struct event, "unsigned", tid, NULL, NULL);
	MEMBER(f, struct event, "unsigned", id, NULL, NULL);
	MEMBER(f, struct event, "unsigned", probe, NULL, NULL);
	MEMBER(f, struct event, "unsigned", cpu, NULL, NULL);
	MEMBER(f, struct event, "unsigned", flags, NULL, NULL);
	if (depth > 0)
		MEMBER(f, struct span, "unsigned", start, "unit", "ns");
	if (depth > 1)
		MEMBER(f, struct call, "signed", ret, NULL, NULL);
	return f;
}

static inline void support_every(struct cJSON *events)
{
	struct cJSON *f = support_event(events, "every", ID_every, sizeof(struct every), 2);

	MEMBER(f, struct every, "unsigned", when, "unit", "ns");
	MEMBER(f, struct every, "unsigned", handle, "unit", "hex");
	MEMBER(f, struct every, "float", ratio, "doc", "a \"ratio\"");
	MEMBER(f, struct every, "signed", balance, NULL, NULL);
	MEMBER(f, struct every, "float", share, NULL, NULL);
	MEMBER(f, struct every, "signed", shift, NULL, NULL);
	MEMBER(f, struct every, "unsigned", name_id, "unit", "string");
	MEMBER(f, struct every, "enum", colour, "enum", "colour");
	MEMBER(f, struct every, "text", comm, NULL, NULL);
	MEMBER(f, struct every, "unsigned", port, NULL, NULL);
	MEMBER(f, struct every, "signed", step, NULL, NULL);
	MEMBER(f, struct every, "unsigned", level, NULL, NULL);
	MEMBER(f, struct every, "signed", sign, NULL, NULL);
	MEMBER(f, struct every, "text", two, NULL, NULL);
}

static inline struct cJSON *support_json(void)
{
	struct cJSON *o = cJSON_Parse("{\"families\":[{\"id\":0,\"name\":\"core\",\"default\":true},"
				      "{\"id\":127,\"name\":\"test\",\"doc\":\"for tests\"}],"
				      "\"options\":[{\"family\":\"test\",\"word\":\"all\"}],"
				      "\"enums\":[{\"name\":\"colour\",\"values\":[{\"name\":\"RED\",\"value\":-1},"
				      "{\"name\":\"GREEN\",\"value\":7},"
				      "{\"name\":\"FAR\",\"value\":\"-9223372036854775807\"}]}],\"events\":[]}");
	struct cJSON *events = cJSON_GetObjectItem(o, "events"), *f;

	f = support_event(events, "meta_string", ID_meta_string, offsetof(struct meta_string, text), 0);
	MEMBER(f, struct meta_string, "unsigned", string, NULL, NULL);
	TAIL(f, struct meta_string, text);
	f = support_event(events, "meta_loss", ID_meta_loss, sizeof(struct meta_loss), 0);
	MEMBER(f, struct meta_loss, "unsigned", first, "unit", "ns");
	MEMBER(f, struct meta_loss, "unsigned", last, "unit", "ns");
	MEMBER(f, struct meta_loss, "unsigned", count, NULL, NULL);
	MEMBER(f, struct meta_loss, "unsigned", family, NULL, NULL);
	MEMBER(f, struct meta_loss, "unsigned", object, NULL, NULL);
	MEMBER(f, struct meta_loss, "unsigned", reason, NULL, NULL);
	support_every(events);
	support_event(events, "point", ID_point, sizeof(struct point), 0);
	f = support_event(events, "note", ID_note, offsetof(struct note, text), 0);
	MEMBER(f, struct note, "unsigned", level, NULL, NULL);
	TAIL(f, struct note, text);
	f = support_event(events, "rare", ID_rare, offsetof(struct rare, text), 1);
	TAIL(f, struct rare, text);
	return o;
}

static inline struct schema *support_schema(void)
{
	struct cJSON *json = support_json();
	struct schema *s = NULL;
	char err[256] = "";

	if (schema__from_json(&s, json, err, sizeof(err)))
		printf("# schema: %s\n", err);
	cJSON_Delete(json);
	return s;
}

static const struct trace_head support_head = {
	.hostname = "host",
	.boot_id = "b007",
	.kernel = "6.1",
	.sonde_version = "0.1",
	.command = "sonde record",
	.cpus = 4,
	.monotonic = 1000000,
	.realtime = 1760000000123456789ULL,
};

static inline u64 support_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

/* The i-th record of one kind, the same at every call. */
static inline struct event support_event_at(u32 i, u16 id)
{
	u64 seed = 88172645463325252ULL + i * 7919ULL;
	struct event e = { .time = 1000000 + i * 1000ULL, .id = id };

	support_random(&seed);
	if (i % 50 == 49)
		e.time -= support_random(&seed) % 900000; /* out of order, as from a ring that is drained late */
	e.pid = 100 + i / 64 % 3;
	e.tid = e.pid * 1000 + i % 5;
	e.cpu = i / 16 % 4;
	e.probe = i % 7;
	e.flags = i % 31 == 0;
	return e;
}

static inline struct every support_every_at(u32 i)
{
	u64 seed = 1234567 + i * 104729ULL;
	struct every v = { .call.span.event = support_event_at(i, ID_every) };

	support_random(&seed);
	v.call.span.start = v.call.span.event.time - support_random(&seed) % 50000;
	v.call.ret = i % 3 ? 0 : -(s64)(i % 9);
	v.when = v.call.span.event.time - support_random(&seed) % 3000;
	v.handle = 0x7f0000000000ULL + support_random(&seed) % 300 * 4096;
	v.ratio = i % 11 ? i / 7.0 : i % 2 ? INFINITY : -0.0;
	v.balance = (s64)support_random(&seed);
	v.share = i * 0.25F;
	v.shift = (s32)(i % 17) - 8;
	v.name_id = i % 5;
	v.colour = i % 4 ? 7 : -1;
	snprintf(v.comm, sizeof(v.comm), "comm-%.*s%u", (int)(i % 6), "xxxxxx", i % 20);
	v.port = support_random(&seed);
	v.step = -(s16)(i % 1000);
	v.level = i % 256;
	v.sign = (s8)(i % 200 - 100);
	memcpy(v.two, i % 2 ? "ab" : "c", 2); /* "ab" without NUL */
	return v;
}

static inline u32 support_note_at(u32 i, void *to)
{
	struct note n = { .event = support_event_at(i, ID_note), .level = i };
	u32 at = offsetof(struct note, text); /* sizeof has padding behind it */

	memcpy(to, &n, at);
	return at + (i % 5 ? sprintf((char *)to + at, "note %u \xc3\xa9", i % 300) : 0);
}

/* Writes record i of a mix of kinds. */
static inline int support_append(struct trace_writer *w, u32 i)
{
	char room[256];
	struct every v;
	struct point p;

	switch (i % 4) {
	case 0:
	case 2:
		v = support_every_at(i);
		return trace_writer__append(w, &v, sizeof(v));
	case 1:
		p.event = support_event_at(i, ID_point);
		return trace_writer__append(w, &p, sizeof(p));
	default:
		return trace_writer__append(w, room, support_note_at(i, room));
	}
}

/* n records, in chunks of `each` (0: the writer's own choice). *len receives the size. */
static inline int support_write_fd(int fd, u32 n, u32 each, bool finish)
{
	struct schema *s = support_schema();
	struct trace_writer *w = NULL;
	char name[32];
	u32 i;
	int err = s ? trace_writer__create(&w, fd, s, &support_head) : -1;

	for (i = 0; i < n && !err; i++) {
		snprintf(name, sizeof(name), "name-%u", i % 10);
		if (i % 100 == 0)
			trace_writer__intern(w, name, strlen(name));
		err = support_append(w, i);
		if (!err && each && i % each == each - 1)
			err = trace_writer__flush(w);
	}
	if (!err)
		err = finish ? trace_writer__finish(w) : trace_writer__flush(w);
	trace_writer__free(w);
	schema__free(s);
	return err;
}

static inline int support_memfd(char *path, size_t room)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	snprintf(path, room, "/proc/self/fd/%d", fd);
	return fd;
}

/* A file of n records in memory: its bytes, malloc'ed. */
static inline u8 *support_write(u32 n, u32 each, bool finish, size_t *len)
{
	char path[64];
	int fd = support_memfd(path, sizeof(path));
	u8 *bytes = NULL;
	off_t size;

	if (fd >= 0 && !support_write_fd(fd, n, each, finish)) {
		size = lseek(fd, 0, SEEK_END);
		bytes = malloc(size);
		if (bytes && pread(fd, bytes, size, 0) == size)
			*len = size;
	}
	close(fd);
	return bytes;
}

/* Puts len bytes into an empty file and opens it. */
static inline int support_open_bytes(struct trace **t, const void *bytes, size_t len, char *err, size_t err_len)
{
	char path[64];
	int fd = support_memfd(path, sizeof(path)), res = -1;

	*t = NULL;
	if (write(fd, bytes, len) == (ssize_t)len)
		res = trace__open(t, path, err, err_len);
	close(fd);
	return res;
}

static inline void support_dump_text(FILE *to, const char *text, u32 len)
{
	u32 i;

	fputc('"', to);
	for (i = 0; i < len; i++)
		if (text[i] >= ' ' && text[i] < 127 && text[i] != '"' && text[i] != '\\')
			fputc(text[i], to);
		else
			fprintf(to, "\\x%02x", (u8)text[i]);
	fputc('"', to);
}

/* Rows in the format of tests/lib/dump.py: one event per line, every field in order. */
static inline int support_dump_rows(const struct rows *r, void *arg)
{
	const struct schema_event *e = rows__event(r);
	FILE *to = arg;
	u32 i, j, len;

	for (i = 0; i < rows__count(r); i++) {
		fputs(e->name, to);
		for (j = 0; j < e->n; j++) {
			const struct schema_field *f = &e->fields[j];
			const char *text;

			fprintf(to, " %s=", f->name);
			if (f->type == FIELD_TEXT || f->type == FIELD_TAIL) {
				text = rows__text(r, f, i, &len);
				support_dump_text(to, text, len);
			} else if (f->type == FIELD_FLOAT) {
				fprintf(to, "%.17g", rows__double(r, f, i));
			} else if (f->type == FIELD_UNSIGNED) {
				fprintf(to, "%llu", rows__u64(r, f, i));
			} else {
				fprintf(to, "%lld", rows__s64(r, f, i));
			}
		}
		fputc('\n', to);
	}
	return 0;
}

/* A whole trace as text, malloc'ed. */
static inline char *support_dump(struct trace *t, const struct trace_filter *filter)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return NULL;
	if (trace__read(t, filter, support_dump_rows, to))
		fputs("read failed\n", to);
	fclose(to);
	return text;
}
