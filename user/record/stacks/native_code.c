// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/native_code.h"

#include "core/meta.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "record/stacks/mappings.h"
#include "record/stacks/stacks.h"
#include "util/array.h"
#include "util/map.h"
#include "util/path.h"
#include "util/recent.h"
#include "util/script_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_MAX	64 /* files */
#define BYTES_MAX	(64ULL << 20) /* of their tables; the least recently used file is closed */
#define PLACES_MAX	(64u << 10) /* of a file; beyond that the cache is cleared */
#define TRIES_MAX	3 /* to open a file */
#define FILES_MAX	2048 /* files known in one generation */
#define CODES_MAX	16384 /* functions known in one generation */
#define JIT_MAX		8192 /* addresses of code without a file that may get a name */
#define JIT_FEW		8 /* fewer addresses of a process are no work of a JIT compiler */
#define JIT_WAIT_US	10000
#define JIT_NS		2000000000ULL /* at most for all names at the end */
#define SCRIPT_PATH_MAX 512
#define SMALL_MAX	16 /* limit of both, for tests */
#define INLINED		(1ULL << 63) /* in keys of functions that are inlined */
#define OWN_NUMBERS	0x80000000u /* ids of functions; BPF assigns lower ids to Python code */

struct file_key {
	u64 dev, ino, path; /* path: its hash */
	u32 generation;
	u32 unused;
};

/* A file in which code was found. After its eviction the same file counts as another one, and so do its functions. */
struct file {
	u32 number; /* from 1 */
	u32 tries; /* to open it */
	bool is_gone; /* the last try failed as the process had ended, and its path has another file or none */
	u32 open; /* index in open[] if the number there is the same */
};

/* What is stored once for all addresses in a function. */
struct function_text {
	const char *source; /* file with its source code, "": not known; behind the name */
	char name[]; /* from the file's symbols, of an inlined function from its debug information */
};

/* A function that was inlined at an address */
struct inlined_code {
	const struct function_text *text;
	u64 key; /* instead of the address of a function that was not inlined */
	u32 line; /* in text->source */
};

/* The code at an offset in a file, as answered by a child that has the file's tables (record/examine/examine.h). */
struct code_place {
	const struct function_text *text; /* NULL: no symbol covers it */
	u32 line; /* in text->source; 0: not known */
	u32 quoted; /* the process for which the text of these lines was requested last */
	struct inlined_code *inlined; /* outermost first; NULL: there are none */
	u32 n_inlined;
	u64 function; /* file address of the function's start, or of the code itself if that is unknown */
	u8 interpreter; /* enum interpreter_code */
	bool is_code, python_call; /* see struct native_place */
	int unwind_error; /* 0: unwind is valid */
	struct elf_unwind unwind;
};

struct open_file {
	u32 number; /* 0: free */
	int fd;
	u32 account; /* of the process that was seen first in it */
	u64 built; /* when it was written, CLOCK_REALTIME ns */
	bool failed; /* it can't be parsed */
	bool late; /* it could not be parsed while the recording ended: each address without a name is counted */
	bool over_budget; /* this has been reported */
	bool has_interpreter; /* a loop of an interpreter was found in it */
	struct map places; /* offset in the file -> struct code_place */
	struct map texts; /* function -> struct function_text * */
	u64 text_bytes;
	u64 used; /* number of the lookup that last used it */
};

struct code_key {
	u64 function;
	u32 file; /* its number; 0: none, and then `function` is one of the values below, or an address of `pid` */
	u32 pid;
};

/* What the trace states of a function; "": not known. */
struct code_texts {
	const char *name, *file, *source;
};

/* Values instead of a function if there is no file. */
enum { CODE_NOWHERE, CODE_ANONYMOUS, CODE_VDSO, CODE_MISSING };

/* An address in code without a file: the process's perf map may have its name when the recording ends. */
struct jit_code {
	u32 pid, account, id;
	u64 address;
};

struct native_code {
	struct session *session;
	struct mappings *mappings;
	struct recent files; /* struct file_key -> struct file */
	struct recent codes; /* struct code_key -> id */
	struct open_file open[OPEN_MAX];
	u64 lookups;
	u64 closed;
	struct jit_code *jit;
	u32 n_jit;
	u64 unnamed; /* addresses that were not named in time, and are not written to the trace yet */
	u32 last_file, last_code; /* the numbers assigned last */
};

struct native_code *native_code__new(struct session *s)
{
	struct native_code *n = calloc(1, sizeof(*n));
	bool small;

	if (!n)
		return NULL;
	n->session = s;
	small = session__test_switch("small-tables");
	recent__init(&n->files, sizeof(struct file_key), sizeof(struct file), small ? SMALL_MAX : FILES_MAX);
	recent__init(&n->codes, sizeof(struct code_key), sizeof(u32), small ? SMALL_MAX : CODES_MAX);
	n->mappings = mappings__new(s);
	if (n->mappings)
		return n;
	native_code__free(n);
	return NULL;
}

static void free_places(struct open_file *f)
{
	MAP_EACH(struct code_place *p, &f->places)
		free(p->inlined);
	map__free(&f->places);
}

static void close_file(struct native_code *n, struct open_file *f)
{
	if (!f->number)
		return;
	free_places(f);
	MAP_EACH(struct function_text **text, &f->texts)
		free(*text);
	map__free(&f->texts);
	close(f->fd);
	*f = (struct open_file){};
	n->closed++;
}

void native_code__free(struct native_code *n)
{
	if (!n)
		return;
	for (u32 i = 0; i < OPEN_MAX; i++)
		close_file(n, &n->open[i]);
	recent__free(&n->files);
	recent__free(&n->codes);
	mappings__free(n->mappings);
	free(n->jit);
	free(n);
}

void native_code__mapped(struct native_code *n, const struct mapping *m)
{
	mappings__add(n->mappings, m);
}

static u64 open_bytes(const struct native_code *n)
{
	u64 bytes = 0;

	for (u32 i = 0; i < OPEN_MAX; i++)
		if (n->open[i].number)
			bytes += map__bytes(&n->open[i].places) + map__bytes(&n->open[i].texts) + n->open[i].text_bytes;
	return bytes;
}

static struct open_file *least_used(struct native_code *n)
{
	struct open_file *least = NULL;

	for (u32 i = 0; i < OPEN_MAX; i++)
		if (n->open[i].number && (!least || n->open[i].used < least->used))
			least = &n->open[i];
	return least;
}

/* Closes the least recently used files while their tables are too large. */
static void limit_bytes(struct native_code *n, u64 bytes)
{
	struct open_file *least;

	while (open_bytes(n) > bytes && (least = least_used(n)))
		close_file(n, least);
}

/* Makes room for one more file. */
static struct open_file *free_place(struct native_code *n)
{
	limit_bytes(n, BYTES_MAX);
	for (u32 i = 0; i < OPEN_MAX; i++)
		if (!n->open[i].number)
			return &n->open[i];
	close_file(n, least_used(n));
	return free_place(n);
}

void native_code__tick(struct native_code *n, u64 now)
{
	mappings__tick(n->mappings, now);
	session__lost(n->session, "sample", LOSS_SHARE, n->unnamed);
	n->unnamed = 0;
	/* a file's table grows with the lookups in it */
	limit_bytes(n, BYTES_MAX);
}

void native_code__trim(struct native_code *n)
{
	limit_bytes(n, 0);
	recent__clear(&n->files);
	recent__clear(&n->codes);
}

static void open_file(struct native_code *n, struct file *f, u32 pid, const struct mapped_code *c)
{
	struct mapping m = {
		.pid = pid,
		.start = c->link_start,
		.end = c->link_end,
		.offset = c->offset,
		.dev = c->dev,
		.ino = c->ino,
		.generation = c->generation,
		.path = mappings__path(n->mappings, c->path),
	};
	struct open_file *o = free_place(n);
	struct stat st;

	f->tries++;
	o->fd = session__open_mapped(n->session, &m);
	f->is_gone = o->fd == -ENOENT || o->fd == -ESRCH || o->fd == -ESTALE;
	if (o->fd < 0)
		return;
	map__init(&o->places, sizeof(u64), sizeof(struct code_place));
	map__init(&o->texts, sizeof(u64), sizeof(struct function_text *));
	o->number = f->number;
	o->built = fstat(o->fd, &st) ? 0 : (u64)st.st_mtim.tv_sec * 1000000000 + (u64)st.st_mtim.tv_nsec;
	o->account = session__user(n->session, pid);
	f->open = (u32)(o - n->open);
	f->tries = 0;
}

/*
 * Returns the open file of a mapping, NULL: it is not open; *number: the file's number, 0: none; *is_gone: it can't be
 * opened any more.
 */
static struct open_file *file_of(struct native_code *n, u32 pid, const struct mapped_code *c, u32 *number,
				 bool *is_gone)
{
	const char *path = mappings__path(n->mappings, c->path);
	struct file_key key = {
		.dev = c->dev, .ino = c->ino, .generation = c->generation, .path = map__hash_bytes(path, strlen(path))
	};
	struct file *f = recent__get(&n->files, &key);

	*number = 0;
	if (!f)
		return NULL;
	if (!f->number)
		f->number = ++n->last_file;
	*number = f->number;
	if (n->open[f->open].number != f->number && f->tries < TRIES_MAX)
		open_file(n, f, pid, c);
	*is_gone = f->is_gone;
	if (n->open[f->open].number != f->number)
		return NULL;
	n->open[f->open].used = ++n->lookups;
	return &n->open[f->open];
}

/* Returns the function's texts, which are stored once for all addresses in it; NULL: no memory. */
static const struct function_text *store_text(struct open_file *f, u64 function, const char *name, const char *source)
{
	struct function_text **text = map__get(&f->texts, &function), *t;
	size_t len = strlen(name) + 1, source_len = strlen(source) + 1;

	if (!text || *text)
		return text ? *text : NULL;
	t = malloc(sizeof(*t) + len + source_len);
	if (!t)
		return NULL;
	t->source = memcpy(t->name + len, source, source_len);
	memcpy(t->name, name, len);
	f->text_bytes += sizeof(*t) + len + source_len;
	return *text = t;
}

static void add_inlined(struct open_file *f, struct code_place *p, const struct dwarf_place *found)
{
	p->inlined = found->n_inlined ? calloc(found->n_inlined, sizeof(*p->inlined)) : NULL;
	for (u32 i = 0; p->inlined && i < found->n_inlined; i++) {
		const struct dwarf_inlined *in = &found->inlined[i];
		struct inlined_code *out = &p->inlined[p->n_inlined];

		out->key = INLINED | (map__hash_bytes(in->name, strlen(in->name)) +
				      31 * map__hash_bytes(in->line.file, strlen(in->line.file)));
		out->text = store_text(f, out->key, in->name, in->line.file);
		out->line = in->line.line;
		p->n_inlined += out->text != NULL;
	}
	f->text_bytes += p->n_inlined * sizeof(*p->inlined);
}

static void fill_place(struct open_file *f, struct code_place *p, const struct found_code *c)
{
	const char *source = c->source.line.file;
	const struct function_text *text = c->is_code && c->has_name ? store_text(f, c->function, c->name, source) :
								       NULL;

	*p = (struct code_place){
		.text = text,
		/* a line of another file, such as a header, would not fit the function's source */
		.line = text && !strcmp(text->source, source) ? c->source.line.line : 0,
		.function = c->function,
		.is_code = c->is_code,
		.interpreter = c->interpreter,
		.python_call = c->python_call,
		.unwind_error = c->unwind_error,
		.unwind = {
			.by_frame_pointer = c->by_frame_pointer,
			.saved = c->saved,
			.outermost = c->outermost,
			.cfa = c->cfa,
			.frame_pointer = c->frame_pointer,
		},
	};
	if (text)
		add_inlined(f, p, &c->source);
}

/* Called when the file can't be parsed: its functions have no names from here on. */
static void abandon_file(struct native_code *n, struct open_file *f, const char *path, int err)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: its functions have no names on native stacks, and their callers are missing",
		 examine__why(err));
	if (err != -ENOEXEC && !session__is_stopping(n->session))
		session__left_out(n->session, path, f->account, text);
	f->failed = true;
}

/* Returns the code at an offset in the file. NULL: it is not code, or unknown. */
static struct code_place *place_at(struct native_code *n, struct open_file *f, const char *path, u64 offset)
{
	struct code_place *p = map__find(&f->places, &offset);
	const struct code_request q = { .fd = f->fd, .number = f->number, .offset = offset, .path = path };
	struct found_code found;
	struct found_end end;
	int err;

	if (p)
		return p->is_code ? p : NULL;
	if (f->failed) {
		n->unnamed += f->late;
		return NULL;
	}
	err = examine__code_at(n->session, &q, &found, &end);
	if (err == -EBUSY) {
		n->unnamed++;
		return NULL;
	}
	if (err) {
		f->late = err == -ETIMEDOUT && session__is_stopping(n->session);
		n->unnamed += f->late;
		abandon_file(n, f, path, err);
		return NULL;
	}
	if (end.over_budget && !f->over_budget) {
		f->over_budget = true;
		session__left_out(n->session, path, f->account, "its symbols exceed sonde's limit of memory for files");
	}
	if (f->places.n >= PLACES_MAX)
		free_places(f);
	p = map__get(&f->places, &offset);
	if (p)
		fill_place(f, p, &found);
	return p && p->is_code ? p : NULL;
}

/* Has the text of the lines written to the trace. */
static void quote(struct native_code *n, const struct open_file *f, struct code_place *p, u32 pid)
{
	if (p->quoted == pid)
		return;
	p->quoted = pid;
	if (p->line)
		stack_records__source_line(n->session, pid, p->text->source, p->line, f->built);
	for (u32 i = 0; i < p->n_inlined; i++)
		stack_records__source_line(n->session, pid, p->inlined[i].text->source, p->inlined[i].line, f->built);
}

/* The line in which a script's function begins */
static void quote_script(struct native_code *n, const char *name, u32 pid)
{
	struct script_name script;
	char path[SCRIPT_PATH_MAX];

	if (script_name__parse(name, &script) && script.file_len < SCRIPT_PATH_MAX) {
		snprintf(path, sizeof(path), "%.*s", script.file_len, script.file);
		stack_records__source_line(n->session, pid, path, script.line, 0);
	}
}

/* Returns whether the file is libc, the loader, or one of the libraries that were separate before glibc 2.34. */
static bool is_libc(const char *path)
{
	const char *name = path__file_name(path);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-", 5) || !strncmp(name, "libpthread", 10) ||
	       !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl", 7);
}

static void write_code(struct native_code *n, u32 id, const struct code_texts *t, u64 start)
{
	struct meta_code e = {
		.event = { .time = session__now(n->session), .id = ID_meta_code },
		.code = id,
		.name = session__intern(n->session, t->name),
		.file = session__intern(n->session, *t->file ? session__path(n->session, t->file) : ""),
		.source = *t->source ? session__intern(n->session, t->source) : 0,
		.start = start,
		.kind = FRAME_NATIVE,
	};

	session__emit(n->session, &e, sizeof(e));
}

static u32 function_id(struct native_code *n, const struct code_key *key, const struct code_texts *t)
{
	u32 *id = n->last_code < OWN_NUMBERS - 1 ? recent__get(&n->codes, key) : recent__find(&n->codes, key);

	if (!id)
		return 0;
	if (*id)
		return *id;
	*id = OWN_NUMBERS | ++n->last_code;
	write_code(n, *id, t, key->file && !(key->function & INLINED) ? key->function : 0);
	return *id;
}

/* Each address is a function of its own until it gets the name of its function. */
static u32 jit_code(struct native_code *n, u32 pid, u64 address)
{
	const struct code_key any = { .function = CODE_ANONYMOUS }, own = { .function = address, .pid = pid };
	bool has_room = n->n_jit < JIT_MAX || recent__find(&n->codes, &own);
	u32 last = n->last_code,
	    id = function_id(n, has_room ? &own : &any, &(struct code_texts){ "[code without a file]", "", "" });

	if (has_room && n->last_code != last &&
	    !array__push(n->jit, n->n_jit, ((struct jit_code){ pid, session__user(n->session, pid), id, address })))
		n->unnamed++;
	return id;
}

/* Is it memory that has the form of a file, as a JIT compiler maps it twice, to write and to execute? */
static bool is_memory(const char *path)
{
	return path__begins_with(path, "/memfd:") || path__begins_with(path, "/dev/zero");
}

/* Describes code that is in no file, or in one that can't be read. */
static void without_file(struct native_code *n, const struct mapped_code *c, u32 pid, u64 pc, bool after_call,
			 struct native_place *out)
{
	const char *path = c ? mappings__path(n->mappings, c->path) : "";
	bool vdso = !strcmp(path, "[vdso]");
	struct code_key key = { .function = vdso ? CODE_VDSO : CODE_NOWHERE };

	out->mapped = c;
	out->named = false;
	out->offset = pc;
	out->unwind_error = -ENOENT;
	if (c && !vdso)
		out->code = jit_code(n, pid, pc - after_call);
	else
		out->code = function_id(n, &key, &(struct code_texts){ vdso ? "[vdso]" : "[unknown]", "", "" });
}

/* Reports why the code of a JIT compiler has no names. */
static void warn_unnamed(struct native_code *n, const struct jit_code *j, u32 count, int err)
{
	struct session *s = n->session;

	if (err == -ENOENT && count >= JIT_FEW)
		session__warn_of(
			s, j->account,
			"process %u: \"[code without a file]\" has no names, as no /tmp/perf-PID.map has them: `node "
			"--perf-basic-prof`, Java's `jcmd PID Compiler.perfmap` and .NET's DOTNET_PerfMapEnabled=1 write it",
			j->pid);
	else if (err != -ENOENT && err != -ESRCH)
		session__warn_of(
			s, j->account,
			"process %u: \"[code without a file]\" has no names, as /tmp/perf-PID.map is not read: %s",
			j->pid,
			err == -EPERM	? "it is a link, or not a file of the process's user" :
			err == -EFBIG	? "it is too large" :
			err == -EREMOTE ? "it lies on a remote file system" :
			err == -ENOEXEC ? "it is not a file of names" :
					  examine__why(err));
}

/* Writes the functions of one process's addresses again, now with names. Returns 0 or negative errno. */
static int name_addresses(struct native_code *n, const struct jit_code *list, u32 count, int fd, u64 until)
{
	struct code_request q = { .fd = fd, .number = ++n->last_file, .path = "perf map", .is_perf_map = true };
	struct found_code found;
	struct found_end end;
	int err = 0;

	for (u32 i = 0; !err && i < count; i++) {
		q.offset = list[i].address;
		while ((err = examine__code_at(n->session, &q, &found, &end)) == -EBUSY &&
		       session__now(n->session) < until)
			usleep(JIT_WAIT_US);
		if (err || !found.has_name)
			continue;
		write_code(n, list[i].id, &(struct code_texts){ found.name, "", "" }, found.function);
		quote_script(n, found.name, list[i].pid);
	}
	return err;
}

static int by_pid(const void *a, const void *b)
{
	const struct jit_code *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void native_code__finish(struct native_code *n)
{
	u64 until = session__now(n->session) + JIT_NS;

	if (n->n_jit)
		qsort(n->jit, n->n_jit, sizeof(*n->jit), by_pid);
	for (u32 i = 0, count; i < n->n_jit && session__now(n->session) < until; i += count) {
		const struct jit_code *j = &n->jit[i];
		int fd, err;

		for (count = 1; i + count < n->n_jit && j[count].pid == j->pid;)
			count++;
		fd = process__is_hung(n->session, j->pid) ?
			     -ESRCH :
			     attacher__open_perf_map(n->session->attacher, j->pid, j->account);
		err = process__note_answer(n->session, j->pid, fd < 0 ? fd : 0) ?:
										  name_addresses(n, j, count, fd, until);
		if (fd >= 0)
			close(fd);
		if (err)
			warn_unnamed(n, j, count, err);
	}
	n->n_jit = 0;
}

u32 native_code__missing(struct native_code *n)
{
	struct code_key key = { .function = CODE_MISSING };

	return function_id(n, &key, &(struct code_texts){ FRAMES_MISSING, "", "" });
}

void native_code__at(struct native_code *n, const struct native_thread *t, u64 pc, bool after_call,
		     struct native_place *out)
{
	const struct mapped_code *c = mappings__at(n->mappings, t->pid, t->parent, pc - after_call, t->time);
	const char *path = c ? mappings__path(n->mappings, c->path) : "";
	struct code_place *p = NULL;
	struct code_key key = {};
	struct open_file *f = NULL;
	char name[320];
	struct code_texts texts = { name, path, "" };

	memset(out, 0, sizeof(*out));
	if (c && c->ino && *path != '[')
		f = file_of(n, t->pid, c, &key.file, &out->is_unread);
	if (f)
		p = place_at(n, f, path, pc - after_call - c->start + c->offset);
	if (!key.file || (!p && is_memory(path))) {
		without_file(n, c, t->pid, pc, after_call, out);
		return;
	}
	out->mapped = true;
	out->offset = pc - c->start + c->offset;
	out->unwind_error = -ENOENT;
	out->starts = is_libc(path);
	out->is_runtime = strstr(path, "/lib-dynload/");
	if (p) {
		quote(n, f, p, t->pid);
		key.function = p->function;
		out->named = p->text;
		out->line = p->line;
		out->interpreter = p->interpreter;
		f->has_interpreter |= p->interpreter != NO_INTERPRETER;
		out->python_call = p->python_call;
		out->starts |= p->text && !strcmp(p->text->name, "_start");
		out->unwind_error = p->unwind_error;
		out->unwind = p->unwind;
	} else {
		key.function = out->offset;
	}
	out->is_runtime |= f && f->has_interpreter;
	snprintf(name, sizeof(name), "%.255s+0x%llx", path__file_name(path), key.function);
	if (p && p->text)
		texts = (struct code_texts){ p->text->name, path, p->text->source };
	out->code = function_id(n, &key, &texts);
	out->n_inlined = p ? p->n_inlined : 0;
	for (u32 i = 0; i < out->n_inlined; i++) {
		const struct inlined_code *in = &p->inlined[i];

		key.function = in->key;
		texts = (struct code_texts){ in->text->name, path, in->text->source };
		out->inlined[i].code = function_id(n, &key, &texts);
		out->inlined[i].line = in->line;
	}
}

void native_code__sizes(const struct native_code *n, table_size_fn *fn, void *arg)
{
	u32 open = 0;

	mappings__sizes(n->mappings, fn, arg);
	for (u32 i = 0; i < OPEN_MAX; i++)
		open += n->open[i].number != 0;
	fn(&(struct table_size){ .name = "files with native code",
				 .entries = recent__entries(&n->files),
				 .max = 2 * n->files.max,
				 .bytes = recent__bytes(&n->files),
				 .evicted = n->files.evicted },
	   arg);
	fn(&(struct table_size){ .name = "symbol and unwinding tables",
				 .entries = open,
				 .max = OPEN_MAX,
				 .bytes = open_bytes(n),
				 .evicted = n->closed },
	   arg);
	fn(&(struct table_size){ .name = "native functions",
				 .entries = recent__entries(&n->codes),
				 .max = 2 * n->codes.max,
				 .bytes = recent__bytes(&n->codes),
				 .evicted = n->codes.evicted },
	   arg);
}
