// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whose code a Python function is: events proc_python have the folders of the standard libraries and the scripts of
 * processes. The processes state these themselves, so a folder counts only if it has a name that libraries have, and a
 * script may only be taken out of the packages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks_private.h"
#include "util/array.h"
#include "util/path.h"
#include "util/python_library.h"

#define LIBRARIES_MAX 64

struct loading {
	struct code_origins *o;
	struct trace *trace;
};

static bool add_library(struct code_origins *o, const char *folder)
{
	if (!python_library__is_folder(folder) || o->n_libraries == LIBRARIES_MAX)
		return true;
	for (u32 i = 0; i < o->n_libraries; i++)
		if (!strcmp(o->libraries[i], folder))
			return true;
	return array__push(o->libraries, o->n_libraries, folder);
}

static bool add_script(struct code_origins *o, const char *file)
{
	u64 hash = map__hash_bytes(file, strlen(file));

	return !*file || map__get(&o->scripts, &hash);
}

static int on_programs(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, library, script);
	struct loading *l = arg;

	for (u32 i = 0; i < rows__count(rows); i++)
		if (!add_library(l->o, trace__string(l->trace, (u32)rows__u64(rows, library, i))) ||
		    !add_script(l->o, trace__string(l->trace, (u32)rows__u64(rows, script, i))))
			return -ENOMEM;
	return 0;
}

int code_origins__load(struct code_origins *o, struct trace *t)
{
	struct loading l = { o, t };

	map__init(&o->scripts, sizeof(u64), sizeof(u8));
	return trace__read_kind(t, "proc_python", on_programs, &l);
}

static bool is_library(const struct code_origins *o, const char *file)
{
	for (u32 i = 0; i < o->n_libraries; i++) {
		size_t len = strlen(o->libraries[i]);

		if (!strncmp(file, o->libraries[i], len) && file[len] == '/' &&
		    !path__begins_with(file + len, "/site-packages/") &&
		    !path__begins_with(file + len, "/dist-packages/"))
			return true;
	}
	return false;
}

enum code_origin code_origins__of(const struct code_origins *o, const char *file)
{
	u64 hash = map__hash_bytes(file, strlen(file));

	if (is_library(o, file))
		return ORIGIN_LIBRARY;
	if (map__find(&o->scripts, &hash))
		return ORIGIN_SCRIPT;
	return o->n_libraries ? ORIGIN_ELSEWHERE : ORIGIN_UNKNOWN;
}

void code_origins__free(struct code_origins *o)
{
	free(o->libraries);
	map__free(&o->scripts);
}
