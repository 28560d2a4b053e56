/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A trace file of synthetic records, opened for reading. */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/names.h"
#include "schema/schema.h"
#include "trace/reader.h"
#include "trace/writer.h"

struct made_trace {
	struct schema *schema;
	struct trace *trace;
	struct names *names;
};

/* Writes n records of `size` bytes. Call made_trace__free also if it returns false, which means failure. */
static inline bool made_trace__of(struct made_trace *m, const char *schema_json, const void *records, size_t size,
				  u32 n)
{
	static struct trace_head head;
	struct trace_writer *w;
	const char *folder = getenv("TMPDIR");
	char path[256], err[256] = "";
	cJSON *json = cJSON_Parse(schema_json);
	int fd, ret;

	*m = (struct made_trace){ 0 };
	snprintf(path, sizeof(path), "%s%smade-XXXXXX", folder ? folder : "", folder ? "/" : "");
	fd = mkstemp(path);
	ret = schema__from_json(&m->schema, json, err, sizeof(err));
	cJSON_Delete(json);
	if (fd < 0 || ret || trace_writer__create(&w, fd, m->schema, &head))
		return false;
	for (u32 i = 0; i < n; i++)
		trace_writer__append(w, (const char *)records + i * size, size);
	trace_writer__finish(w);
	trace_writer__free(w);
	close(fd);
	ret = trace__open(&m->trace, path, err, sizeof(err)) || names__create(&m->names, trace__schema(m->trace));
	unlink(path);
	return !ret;
}

static inline void made_trace__free(struct made_trace *m)
{
	names__free(m->names);
	trace__close(m->trace);
	schema__free(m->schema);
}
