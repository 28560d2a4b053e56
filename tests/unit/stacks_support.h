/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Traces with stacks for the tests of their readers: a small schema, with frames and code from the test. */
#pragma once

#include "trace_support.h"

enum { ID_hit = 0x7f11 };

struct hit {
	struct event event;
	u32 stack, other, where;
	u32 plain;
};

static inline struct cJSON *stacks_json(void)
{
	struct cJSON *o = cJSON_Parse("{\"families\":[{\"id\":0,\"name\":\"core\"},{\"id\":127,\"name\":\"test\"}],"
				      "\"options\":[],\"enums\":[{\"name\":\"frame_kind\",\"values\":["
				      "{\"name\":\"FRAME_PYTHON\",\"value\":1},{\"name\":\"FRAME_NATIVE\",\"value\":2},"
				      "{\"name\":\"FRAME_KERNEL\",\"value\":3},{\"name\":\"FRAME_CUT\",\"value\":4}]}],"
				      "\"events\":[]}");
	struct cJSON *events = cJSON_GetObjectItem(o, "events"), *f;

	f = support_event(events, "meta_string", ID_meta_string, offsetof(struct meta_string, text), 0);
	MEMBER(f, struct meta_string, "unsigned", string, NULL, NULL);
	TAIL(f, struct meta_string, text);
	f = support_event(events, "meta_code", ID_meta_code, sizeof(struct meta_code), 0);
	MEMBER(f, struct meta_code, "unsigned", code, "unit", "code");
	MEMBER(f, struct meta_code, "unsigned", name, "unit", "string");
	MEMBER(f, struct meta_code, "unsigned", file, "unit", "string");
	MEMBER(f, struct meta_code, "unsigned", line, NULL, NULL);
	MEMBER(f, struct meta_code, "enum", kind, "enum", "frame_kind");
	MEMBER(f, struct meta_code, "unsigned", start, "unit", "hex");
	f = support_event(events, "meta_frame", ID_meta_frame, sizeof(struct meta_frame), 0);
	MEMBER(f, struct meta_frame, "unsigned", offset, "unit", "hex");
	MEMBER(f, struct meta_frame, "unsigned", frame, "unit", "stack");
	MEMBER(f, struct meta_frame, "unsigned", caller, "unit", "stack");
	MEMBER(f, struct meta_frame, "unsigned", code, "unit", "code");
	MEMBER(f, struct meta_frame, "unsigned", line, NULL, NULL);
	MEMBER(f, struct meta_frame, "enum", kind, "enum", "frame_kind");
	f = support_event(events, "hit", ID_hit, sizeof(struct hit), 0);
	MEMBER(f, struct hit, "unsigned", stack, "unit", "stack");
	MEMBER(f, struct hit, "unsigned", other, "unit", "stack");
	MEMBER(f, struct hit, "unsigned", where, "unit", "code");
	MEMBER(f, struct hit, "unsigned", plain, NULL, NULL);
	return o;
}

/* A trace being written to memory. */
struct stacks_file {
	struct trace_writer *writer;
	struct schema *schema;
	char path[64];
	int fd;
	u64 now;
};

static inline bool stacks_begin(struct stacks_file *f, const struct trace_head *head)
{
	struct cJSON *json = stacks_json();
	char err[256] = "";

	*f = (struct stacks_file){ .now = 1000000 };
	f->fd = support_memfd(f->path, sizeof(f->path));
	if (schema__from_json(&f->schema, json, err, sizeof(err)))
		printf("# schema: %s\n", err);
	cJSON_Delete(json);
	return f->schema && !trace_writer__create(&f->writer, f->fd, f->schema, head);
}

static inline void stacks_code(struct stacks_file *f, u32 code, const char *name, const char *file, u32 line)
{
	struct meta_code c = {
		.event = { .time = f->now++, .id = ID_meta_code },
		.code = code,
		.name = trace_writer__intern(f->writer, name, strlen(name)),
		.file = trace_writer__intern(f->writer, file, strlen(file)),
		.line = line,
		.kind = FRAME_PYTHON,
	};

	trace_writer__append(f->writer, &c, sizeof(c));
}

static inline void stacks_frame(struct stacks_file *f, enum frame_kind kind, u32 frame, u32 caller, u32 code, u32 line)
{
	struct meta_frame m = {
		.event = { .time = f->now++, .id = ID_meta_frame },
		.offset = 0x1000 + line,
		.frame = frame,
		.caller = caller,
		.code = code,
		.line = line,
		.kind = kind,
	};

	trace_writer__append(f->writer, &m, sizeof(m));
}

static inline void stacks_hit(struct stacks_file *f, u32 stack, u32 other, u32 where)
{
	struct hit h = {
		.event = { .time = f->now++, .pid = 7, .tid = 8, .id = ID_hit },
		.stack = stack,
		.other = other,
		.where = where,
		.plain = stack,
	};

	trace_writer__append(f->writer, &h, sizeof(h));
}

/* Ends the file and opens it. */
static inline struct trace *stacks_open(struct stacks_file *f)
{
	struct trace *t = NULL;
	char err[256] = "";

	if (trace_writer__finish(f->writer) || trace__open(&t, f->path, err, sizeof(err)))
		printf("# %s\n", err);
	trace_writer__free(f->writer);
	schema__free(f->schema);
	close(f->fd);
	return t;
}
