// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of frames, and whether they are the user's own code. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "model/stacks.h"
#include "output/text.h"
#include "util/array.h"
#include "util/map.h"
#include "util/path.h"
#include "util/python_library.h"

bool stack_frame__is_users(const struct stack_frame *f)
{
	return f->kind == FRAME_PYTHON && *f->name && strncmp(f->file, "<frozen ", 8) != 0 &&
	       !stack_frame__is_library(f);
}

bool stack_frame__is_script(const struct stack_frame *f)
{
	return f->kind == FRAME_NATIVE && !*f->file && *f->source && !path__begins_with(f->source, "node:") &&
	       !strstr(f->source, "/node_modules/");
}

bool stack_frame__is_library(const struct stack_frame *f)
{
	return f->origin == ORIGIN_LIBRARY || (f->origin != ORIGIN_SCRIPT && python_library__part(f->file));
}

bool stack_frame__is_package(const struct stack_frame *f)
{
	return f->origin != ORIGIN_SCRIPT && python_library__is_package(f->file);
}

bool stack_frame__is_own(const struct stack_frame *f)
{
	return stack_frame__is_users(f) && !stack_frame__is_package(f);
}

bool stack_frame__is_generated(const struct stack_frame *f)
{
	static const char *const files[] = { "<string>", "<attrs generated", "<decorator-gen-", "<__array_function__" };

	for (size_t i = 0; f->kind == FRAME_PYTHON && i < ARRAY_LEN(files); i++)
		if (!strncmp(f->file, files[i], strlen(files[i])))
			return true;
	return false;
}

/* Returns a precision for names: without it printf walks all of a text that it cuts, and names may have 64 KiB. */
static int cut_at(size_t size)
{
	return size < INT_MAX ? (int)size : INT_MAX;
}

/* Returns the frame's name, or a text for a missing one. */
static const char *name_of(const struct stack_frame *f, char *buf, size_t size)
{
	if (*f->name)
		return f->name;
	if (f->kind == FRAME_CUT)
		return "[cut]";
	if (f->kind != FRAME_PYTHON && *f->file)
		snprintf(buf, size, "0x%llx", f->offset);
	else
		snprintf(buf, size, "[unknown]");
	return buf;
}

const char *stack_frame__source(const struct stack_frame *f)
{
	return f->line && *f->source ? f->source : f->file;
}

char *stacks__label(const struct stacks *s, u32 id, char *buf, size_t size)
{
	const struct stack_frame *f = stacks__frame(s, id);
	char room[32];
	const char *name = f ? name_of(f, room, sizeof(room)) : "?";
	int cut = cut_at(size);

	if (!f || f->kind == FRAME_CUT)
		snprintf(buf, size, "%.*s", cut, name);
	else if (f->kind == FRAME_PYTHON && *f->file && f->line)
		snprintf(buf, size, "%.*s:%u %.*s", cut, path__file_name(f->file), f->line, cut, name);
	else if (f->kind == FRAME_PYTHON && *f->file)
		snprintf(buf, size, "%.*s %.*s", cut, path__file_name(f->file), cut, name);
	else if (f->kind == FRAME_KERNEL)
		snprintf(buf, size, "%.*s (kernel)", cut, name);
	else if (f->line && *f->source)
		snprintf(buf, size, "%.*s (%.*s:%u)", cut, name, cut, path__file_name(f->source), f->line);
	else if (*f->file)
		snprintf(buf, size, "%.*s (%.*s)", cut, name, cut, path__file_name(f->file));
	else
		snprintf(buf, size, "%.*s", cut, name);
	return buf;
}

char *stacks__function(const struct stacks *s, u32 id, char *buf, size_t size)
{
	return stack_frame__function(stacks__frame(s, id), buf, size);
}

bool stack_frame__is_address(const struct stack_frame *f)
{
	const char *file = path__file_name(f->file);
	size_t len = strlen(file);

	return *file && (!*f->name || (!strncmp(f->name, file, len) && !strncmp(f->name + len, "+0x", 3)));
}

/* A name of C++ or Rust that is longer than this is printed without the arguments of its templates. */
#define LONG_NAME 64

/* Writes "Table::look_up<..>" of "Table::look_up<Key<One>, Two>". */
static void write_short(const char *name, char *buf, size_t size)
{
	size_t n = 0;
	u32 depth = 0;

	for (; *name && n + 4 < size; name++) {
		if (*name == '>' && depth && name[-1] != '-')
			depth--;
		if (!depth)
			buf[n++] = *name;
		if (*name != '<')
			continue;
		if (!depth++)
			n += (size_t)snprintf(buf + n, size - n, "..");
	}
	buf[n] = '\0';
}

char *stack_frame__native(const struct stack_frame *f, char *buf, size_t size)
{
	if (!f || !stack_frame__is_address(f)) {
		char name[192];

		if (!f || strlen(f->name) < LONG_NAME || !strchr(f->name, '<'))
			return stack_frame__function(f, buf, size);
		write_short(f->name, name, sizeof(name));
		snprintf(buf, size, "%.*s (%.*s)", cut_at(size), name, cut_at(size), path__file_name(f->file));
		return buf;
	}
	snprintf(buf, size, "%.*s", cut_at(size), path__file_name(f->file));
	return buf;
}

char *stack_frame__function(const struct stack_frame *f, char *buf, size_t size)
{
	char room[32];
	const char *name = f ? name_of(f, room, sizeof(room)) : "?";
	int cut = cut_at(size);

	if (f && f->kind == FRAME_KERNEL)
		snprintf(buf, size, "%.*s_[k]", cut, name);
	else if (f && f->kind != FRAME_CUT && *f->file)
		snprintf(buf, size, "%.*s (%.*s)", cut, name, cut, path__file_name(f->file));
	else
		snprintf(buf, size, "%.*s", cut, name);
	return buf;
}

/* Writes the module of a file of the standard library: "json.encoder", "importlib._bootstrap", "asyncio". */
static void write_module(const char *file, char *buf, size_t size)
{
	const char *part = python_library__part(file), *folder = part ? strstr(part, "/python3") : NULL;
	const char *start = folder ? strchr(folder + 1, '/') + 1 : part ? part : path__file_name(file);
	size_t len;

	start += path__begins_with(start, "<frozen ") ? strlen("<frozen ") : 0;
	len = strlen(start);
	len -= path__ends_with(start, ">") ? 1 : path__ends_with(start, ".py") ? strlen(".py") : 0;
	len -= len >= 9 && !memcmp(start + len - 9, "/__init__", 9) ? 9 : 0;
	snprintf(buf, size, "%.*s", len < size ? (int)len : (int)size, start);
	for (char *at = buf; (at = strchr(at, '/')) != NULL;)
		*at = '.';
}

/* Writes the name of the installed package to which a file belongs, "sqlalchemy". */
static void write_package(const char *file, char *buf, size_t size)
{
	const char *last = NULL;
	size_t len;

	for (const char *at = file; (at = strstr(at, "-packages/")) != NULL;)
		last = at += strlen("-packages/");
	len = last ? strcspn(last, "/") : 0;
	len -= last && len > 3 && !memcmp(last + len - 3, ".py", 3) ? 3 : 0;
	snprintf(buf, size, "%.*s", len < size ? (int)len : (int)size, last ? last : "");
}

char *stack_frame__qualified(const struct stack_frame *f, char *buf, size_t size)
{
	char owner[64];

	if (f->kind != FRAME_PYTHON)
		return stack_frame__native(f, buf, size);
	if (stack_frame__is_package(f)) {
		write_package(f->file, owner, sizeof(owner));
		snprintf(buf, size, "%s's %.*s", owner, cut_at(size), f->name);
	} else if (!stack_frame__is_users(f)) {
		write_module(f->file, owner, sizeof(owner));
		snprintf(buf, size, "%s.%.*s", owner, cut_at(size), f->name);
	} else {
		stack_frame__function(f, buf, size);
	}
	return buf;
}

/*
 * Appends a name without ';', which separates frames. Cleaning never shortens a text, so only as many bytes of the name
 * are read as fit into the buffer.
 */
static size_t put_clean(const char *name, char *buf, size_t size, size_t used)
{
	size_t len = used < size ? strnlen(name, size - used) : 0;
	char *clean = text__clean(name, len);

	for (const char *p = clean ? clean : "?"; *p; p++, used++)
		if (used + 1 < size)
			buf[used] = *p == ';' ? ':' : *p;
	free(clean);
	return used;
}

u64 stack_frame__name_hash(const struct stack_frame *f)
{
	char room[32];
	const char *name = name_of(f, room, sizeof(room));

	return XXH3_64bits(name, strlen(name));
}

u64 stack_frame__hash(const struct stack_frame *f)
{
	return map__hash_bytes(f->name, strlen(f->name)) ^ 31 * map__hash_bytes(f->file, strlen(f->file));
}

size_t stacks__folded(const struct stacks *s, u32 id, char *buf, size_t size)
{
	u32 depth = stacks__depth(s, id);
	u32 *ids = depth ? calloc(depth, sizeof(*ids)) : NULL;
	size_t used = 0;
	char room[32];

	depth = ids ? stacks__path(s, id, ids, depth) : 0;
	for (u32 i = 0; i < depth && used < size; i++) {
		if (i && used + 1 < size)
			buf[used] = ';';
		used += i > 0;
		used = put_clean(name_of(stacks__frame(s, ids[i]), room, sizeof(room)), buf, size, used);
	}
	if (!depth)
		used = put_clean("?", buf, size, used);
	if (size)
		buf[used < size ? used : size - 1] = 0;
	free(ids);
	return used;
}
