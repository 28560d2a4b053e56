// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/native_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/meta.h"
#include "record/family.h"
#include "record/mappings.h"
#include "record/symbols.h"
#include "util/map.h"

#define OPEN_MAX    64 /* files */
#define BYTES_MAX   (96ULL << 20) /* of their symbols; the least used goes */
#define TRIES_MAX   3 /* to open a file */
#define CODES_MAX   (1u << 20)
#define OWN_NUMBERS 0x80000000u /* of functions; BPF numbers those of Python below */

struct file_key {
	u64 dev, ino;
	u32 generation;
	u32 path;
};

struct file {
	int fd; /* if elf */
	struct elf *elf; /* NULL: not open */
	struct symbols *symbols;
	u64 used; /* when, in lookups */
	u32 tries;
	u32 number; /* from 1 */
};

struct code_key {
	u64 function;
	u32 file; /* its number; 0: none, and function says what it is */
	u32 unused;
};

/* Instead of a function where there is no file. */
enum { CODE_NOWHERE, CODE_ANONYMOUS, CODE_VDSO, CODE_MISSING };

struct native_code {
	struct session *session;
	struct mappings *mappings;
	struct map files; /* struct file_key -> struct file */
	struct map codes; /* struct code_key -> id */
	u64 lookups;
	u32 open;
};

struct native_code *native_code__new(struct session *s)
{
	struct native_code *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->session = s;
	map__init(&n->files, sizeof(struct file_key), sizeof(struct file));
	map__init(&n->codes, sizeof(struct code_key), sizeof(u32));
	n->mappings = mappings__new(s);
	if (n->mappings)
		return n;
	native_code__free(n);
	return NULL;
}

static void close_file(struct native_code *n, struct file *f)
{
	if (!f->elf)
		return;
	symbols__free(f->symbols);
	elf__close(f->elf);
	close(f->fd);
	f->symbols = NULL;
	f->elf = NULL;
	n->open--;
}

void native_code__free(struct native_code *n)
{
	if (!n)
		return;
	for (u32 i = 0; i < n->files.n; i++)
		close_file(n, map__value(&n->files, i));
	map__free(&n->files);
	map__free(&n->codes);
	mappings__free(n->mappings);
	free(n);
}

void native_code__mapped(struct native_code *n, const struct mapping *m)
{
	mappings__add(n->mappings, m);
}

void native_code__tick(struct native_code *n, u64 now)
{
	mappings__tick(n->mappings, now);
}

/* Makes room for one more. */
static void close_least_used(struct native_code *n)
{
	struct file *least;
	u64 bytes;

	do {
		least = NULL;
		bytes = 0;
		for (u32 i = 0; i < n->files.n; i++) {
			struct file *f = map__value(&n->files, i);

			if (!f->elf)
				continue;
			bytes += symbols__bytes(f->symbols);
			if (!least || f->used < least->used)
				least = f;
		}
		if (n->open < OPEN_MAX && bytes < BYTES_MAX)
			return;
		if (least)
			close_file(n, least);
	} while (least);
}

static void open_file(struct native_code *n, struct file *f, u32 pid, const struct mapped_code *c)
{
	struct mapping m = {
		.pid = pid,
		.start = c->start,
		.end = c->end,
		.offset = c->offset,
		.dev = c->dev,
		.ino = c->ino,
		.generation = c->generation,
		.path = mappings__path(n->mappings, c->path),
	};

	f->tries++;
	close_least_used(n);
	f->fd = session__open_mapped(n->session, &m);
	if (f->fd < 0)
		return;
	if (!elf__open(&f->elf, f->fd)) {
		if (!symbols__new(&f->symbols, f->elf)) {
			n->open++;
			f->tries = 0;
			return;
		}
		elf__close(f->elf);
	}
	f->elf = NULL;
	close(f->fd);
}

static struct file *file_of(struct native_code *n, u32 pid, const struct mapped_code *c)
{
	struct file_key key = { .dev = c->dev, .ino = c->ino, .generation = c->generation, .path = c->path };
	struct file *f = map__get(&n->files, &key);

	if (!f)
		return NULL;
	if (!f->number)
		f->number = n->files.n;
	f->used = ++n->lookups;
	if (!f->elf && f->tries < TRIES_MAX)
		open_file(n, f, pid, c);
	return f;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* libc and the loader, and what glibc before 2.34 has apart */
static bool is_libc(const char *path)
{
	const char *name = base_name(path);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-", 5) || !strncmp(name, "libpthread", 10) ||
	       !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl", 7);
}

static u32 intern(struct native_code *n, const struct code_key *key, const char *name, const char *file)
{
	struct meta_code e = {
		.event = { .time = session__now(n->session), .id = ID_meta_code },
		.kind = FRAME_NATIVE,
	};
	u32 *id = map__find(&n->codes, key);

	if (id)
		return *id;
	id = n->codes.n < CODES_MAX ? map__get(&n->codes, key) : NULL;
	if (!id)
		return 0;
	e.code = *id = OWN_NUMBERS | n->codes.n;
	e.name = session__intern(n->session, name);
	e.file = session__intern(n->session, *file ? session__path(n->session, file) : "");
	session__emit(n->session, &e, sizeof(e));
	return *id;
}

/* Code that is in no file, or in none that can be read. */
static void without_file(struct native_code *n, const struct mapped_code *c, u64 pc, struct native_place *out)
{
	const char *path = c ? mappings__path(n->mappings, c->path) : "";
	bool vdso = !strcmp(path, "[vdso]");
	struct code_key key = { .function = !c ? CODE_NOWHERE : vdso ? CODE_VDSO : CODE_ANONYMOUS };

	out->mapped = c;
	out->named = false;
	out->offset = pc;
	out->unwind_error = -ENOENT;
	out->code = intern(n, &key, !c ? "[unknown]" : vdso ? "[vdso]" : "[code without a file]", "");
}

u32 native_code__missing(struct native_code *n)
{
	struct code_key key = { .function = CODE_MISSING };

	return intern(n, &key, "[frames missing]", "");
}

void native_code__at(struct native_code *n, const struct native_thread *t, u64 pc, bool after_call,
		     struct native_place *out)
{
	const struct mapped_code *c = mappings__at(n->mappings, t->pid, t->parent, pc - after_call, t->time);
	const char *path = c ? mappings__path(n->mappings, c->path) : "";
	const struct code_place *p = NULL;
	struct code_key key = {};
	struct file *f = NULL;
	char name[320];

	memset(out, 0, sizeof(*out));
	if (c && c->ino && *path != '[')
		f = file_of(n, t->pid, c);
	if (!f) {
		without_file(n, c, pc, out);
		return;
	}
	out->mapped = true;
	out->offset = pc - c->start + c->offset;
	out->unwind_error = -ENOENT;
	out->starts = is_libc(path);
	key.file = f->number;
	if (f->elf)
		p = symbols__at(f->symbols, out->offset - after_call);
	if (p) {
		key.function = p->function;
		out->named = p->name;
		out->interpreter = p->interpreter;
		out->python_call = p->python_call;
		out->starts |= p->name && !strcmp(p->name, "_start");
		out->unwind_error = p->unwind_error;
		out->unwind = p->unwind;
	} else {
		key.function = out->offset;
	}
	if (p && p->name)
		snprintf(name, sizeof(name), "%s", p->name);
	else
		snprintf(name, sizeof(name), "%.255s+0x%llx", base_name(path), key.function);
	out->code = intern(n, &key, name, path);
}
