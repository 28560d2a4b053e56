// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames are sorted by id, and each has the index of its caller. An untrusted file may lack a caller, or have a cycle
 * or a chain of millions. After loading, the frames are a forest in which each path to a root has at most
 * STACKS_DEEPEST frames, so that walks need no further checks.
 */
#include "model/stacks_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/demangle.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/path.h"
#include "util/script_name.h"

#define NONE		0xffffffffu
#define DEMANGLED_NAME	4096 /* bytes of a name; longer ones are cut */
#define DEMANGLED_BYTES (64u << 20) /* of all names */

struct entry {
	u32 id;
	u32 caller; /* index of the caller; NONE: it is the outermost frame */
	u32 user, generated; /* ids of the innermost frames of the user's code from this one outwards, 0: none */
	u32 depth; /* number of frames from the outermost to this one; 0: not known yet */
	struct stack_frame frame;
};

struct code {
	u32 id;
	u32 function; /* the lowest id among equal functions, see unite_codes() */
	u32 first_line;
	const char *symbol, *file, *source;
	char *demangled; /* NULL: the symbol is the name; of a script its file follows, the `source` */
	u32 script_line; /* first line of a script's function, whose current line is not known */
	u64 start, time;
	enum code_origin origin;
};

struct stacks {
	struct trace *trace;
	struct entry *frames; /* by id */
	struct code *codes; /* by id */
	u32 n, n_codes;
	u8 **room; /* see stacks__room() */
	u32 broken;
	bool starts_known; /* older traces lack `start`, and have each function once */
};

static int on_codes(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, code, line, name, file, source, start, time);
	struct stacks *s = arg;
	int err = 0;

	s->starts_known = start;
	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		u32 id = (u32)rows__u64(rows, code, i);

		err = id && (s->n_codes == NONE || !array__room(s->codes, s->n_codes)) ? -ENOMEM : 0;
		if (!err && id)
			s->codes[s->n_codes++] = (struct code){
				.id = id,
				.function = id,
				.first_line = (u32)rows__u64(rows, line, i),
				.symbol = trace__string(s->trace, (u32)rows__u64(rows, name, i)),
				.file = trace__string(s->trace, (u32)rows__u64(rows, file, i)),
				.source = source ? trace__string(s->trace, (u32)rows__u64(rows, source, i)) : "",
				.start = start ? rows__u64(rows, start, i) : 0,
				.time = rows__u64(rows, time, i),
			};
	}
	return err;
}

static int on_frames(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, frame, caller, code, line, kind, offset);
	struct stacks *s = arg;
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		u32 id = (u32)rows__u64(rows, frame, i);

		err = id && (s->n == NONE || !array__room(s->frames, s->n)) ? -ENOMEM : 0;
		if (err || !id)
			continue;
		s->frames[s->n++] = (struct entry){
			.id = id,
			.caller = NONE,
			.frame = {
				.caller = (u32)rows__u64(rows, caller, i),
				.code = (u32)rows__u64(rows, code, i),
				.line = (u32)rows__u64(rows, line, i),
				.kind = rows__s64(rows, kind, i),
				.offset = rows__u64(rows, offset, i),
				.name = "",
				.symbol = "",
				.file = "",
				.source = "",
			},
		};
	}
	return err;
}

static u32 index_of(const struct stacks *s, u32 id)
{
	u32 guess = s->n ? id - s->frames[0].id : 0;
	const struct entry *e;

	if (!id || !s->n)
		return NONE;
	/* ids mostly have no gaps */
	if (guess < s->n && s->frames[guess].id == id)
		return guess;
	e = bsearch(&id, s->frames, s->n, sizeof(*s->frames), compare__u32);
	return e ? (u32)(e - s->frames) : NONE;
}

/* Of a function that was written again the newest item is first: it got its name when the recording ended. */
static int by_id_and_time(const void *a, const void *b)
{
	const struct code *x = a, *y = b;
	int order = compare__u32(a, b);

	return order ? order : x->time > y->time ? -1 : x->time < y->time;
}

/* Retains the first item of each id; returns how many remain. Differing frames of one id are a damaged file's. */
static u32 unique(void *list, u32 n, size_t size, int (*compare)(const void *, const void *))
{
	u8 *base = list;
	u32 n_unique = 0;

	if (n)
		qsort(list, n, size, compare);
	for (u32 i = 0; i < n; i++)
		if (!n_unique || compare__u32(base + (n_unique - 1) * size, base + i * size)) {
			memmove(base + n_unique * size, base + i * size, size);
			n_unique++;
		}
	return n_unique;
}

/* Compares all fields but the id, then the id. */
static int compare_functions(const struct code *x, const struct code *y)
{
	int order = strcmp(x->symbol, y->symbol);

	if (!order)
		order = strcmp(x->file, y->file);
	if (!order)
		order = x->start < y->start ? -1 : x->start > y->start;
	return order ? order : x->first_line < y->first_line ? -1 : x->first_line > y->first_line;
}

static int by_function(const void *a, const void *b)
{
	const struct code *x = *(const struct code *const *)a, *y = *(const struct code *const *)b;
	int order = compare_functions(x, y);

	return order ? order : compare__u32(x, y);
}

/* Merges functions that a recording evicted and numbered anew when they reappeared. */
static int unite_codes(struct stacks *s)
{
	struct code **list;

	if (!s->starts_known || !s->n_codes)
		return 0;
	list = calloc(s->n_codes, sizeof(struct code *));
	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < s->n_codes; i++)
		list[i] = &s->codes[i];
	qsort(list, s->n_codes, sizeof(struct code *), by_function);
	/* functions without a name may differ */
	for (u32 i = 1; i < s->n_codes; i++)
		if (*list[i]->symbol && !compare_functions(list[i - 1], list[i]))
			list[i]->function = list[i - 1]->function;
	free(list);
	return 0;
}

/*
 * Divides the name of a script's function into name, file and line. Returns the bytes of memory for that, 0: it is no
 * such function, or no memory.
 */
static size_t name_script(struct code *c)
{
	struct script_name n;
	int len;

	if (!script_name__parse(c->symbol, &n))
		return 0;
	len = asprintf(&c->demangled, "%.*s%c%.*s", n.function_len, n.function, 0, n.file_len, n.file);
	if (len < 0) {
		c->demangled = NULL;
		return 0;
	}
	c->symbol = n.symbol;
	c->source = c->demangled + strlen(c->demangled) + 1;
	c->script_line = n.line;
	c->start = 0;
	return (size_t)len + 1;
}

static void name_scripts(struct stacks *s)
{
	u64 bytes = 0;

	for (u32 i = 0; i < s->n_codes && bytes < DEMANGLED_BYTES; i++)
		bytes += name_script(&s->codes[i]);
}

/* Demangles the names of C++ and Rust. A hostile file may have very many: further ones stay as they are. */
static void demangle_codes(struct stacks *s)
{
	char name[DEMANGLED_NAME];
	u64 bytes = 0;

	for (u32 i = 0; i < s->n_codes && bytes < DEMANGLED_BYTES; i++) {
		struct code *c = &s->codes[i];

		if (c->demangled || c->symbol[0] != '_' || strnlen(c->symbol, sizeof(name)) == sizeof(name) ||
		    !strcmp(demangle__short(c->symbol, name, sizeof(name)), c->symbol))
			continue;
		c->demangled = strdup(name);
		bytes += strlen(name);
	}
}

static void add_names(struct stacks *s)
{
	for (u32 i = 0; i < s->n; i++) {
		struct stack_frame *f = &s->frames[i].frame;
		const struct code *c = NULL;

		if (f->code && s->n_codes)
			c = bsearch(&f->code, s->codes, s->n_codes, sizeof(*s->codes), compare__u32);
		if (c) {
			f->code = c->function;
			f->symbol = c->symbol;
			f->name = c->demangled ? c->demangled : c->symbol;
			f->file = c->file;
			f->source = c->source;
			f->line = f->line ? f->line : c->script_line;
			f->first_line = c->first_line;
			f->origin = c->origin;
		}
		s->frames[i].caller = index_of(s, f->caller);
		s->broken += f->caller && s->frames[i].caller == NONE;
	}
}

/* Is called for the caller's frame first. */
static void find_user(struct stacks *s, struct entry *e)
{
	const struct entry *caller = e->caller == NONE ? NULL : &s->frames[e->caller];
	bool is_users = stack_frame__is_users(&e->frame),
	     is_generated = is_users && stack_frame__is_generated(&e->frame);

	e->user = is_users && !is_generated ? e->id : caller ? caller->user : 0;
	e->generated = is_generated ? e->id : caller ? caller->generated : 0;
}

/* Makes the frame an outermost one. */
static void cut_stack(struct stacks *s, u32 i)
{
	s->frames[i].caller = NONE;
	s->frames[i].depth = 1;
	s->broken++;
}

/*
 * Computes the depth of frame i and its callers: walks up to a caller of known depth, and back down the same path,
 * which is stored in `path`. A frame that is reached twice on the way up closes a cycle, which is cut there.
 */
static void compute_depths(struct stacks *s, u32 i, u32 *path)
{
	u32 n = 0, depth;

	while (i != NONE && !s->frames[i].depth) {
		s->frames[i].depth = NONE; /* marks the path */
		path[n++] = i;
		i = s->frames[i].caller;
	}
	if (i != NONE && s->frames[i].depth == NONE) {
		/* the caller is on the path itself: the last frame, which closes the cycle, loses its caller */
		s->frames[path[n - 1]].caller = NONE;
		s->broken++;
		i = NONE;
	}
	for (depth = i == NONE ? 0 : s->frames[i].depth; n--; depth = s->frames[path[n]].depth) {
		if (depth >= STACKS_DEEPEST)
			cut_stack(s, path[n]);
		else
			s->frames[path[n]].depth = depth + 1;
		find_user(s, &s->frames[path[n]]);
	}
}

static int link_frames(struct stacks *s)
{
	u32 *path = calloc((size_t)s->n + 1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	add_names(s);
	for (u32 i = 0; i < s->n; i++)
		compute_depths(s, i, path);
	for (u32 i = 0; i < s->n; i++) {
		u32 caller = s->frames[i].caller;

		s->frames[i].frame.caller = caller == NONE ? 0 : s->frames[caller].id;
	}
	free(path);
	return 0;
}

static int find_origins(struct stacks *s)
{
	struct code_origins origins = { .libraries = NULL };
	int err = code_origins__load(&origins, s->trace);

	for (u32 i = 0; i < s->n_codes && !err; i++)
		s->codes[i].origin = code_origins__of(&origins, s->codes[i].file);
	code_origins__free(&origins);
	return err;
}

int stacks__load(struct stacks **out, struct trace *t)
{
	struct stacks *s = calloc(1, sizeof(*s));
	int err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->trace = t;
	s->room = calloc(1, sizeof(*s->room));
	err = s->room ? trace__read_kind(s->trace, "meta_code", on_codes, s) : -ENOMEM;
	if (!err)
		err = trace__read_kind(s->trace, "meta_frame", on_frames, s);
	if (!err) {
		s->n_codes = unique(s->codes, s->n_codes, sizeof(*s->codes), by_id_and_time);
		s->n = unique(s->frames, s->n, sizeof(*s->frames), compare__u32);
		name_scripts(s);
		err = unite_codes(s);
		demangle_codes(s);
	}
	if (!err)
		err = find_origins(s);
	if (!err)
		err = link_frames(s);
	if (err) {
		stacks__free(s);
		return err;
	}
	*out = s;
	return 0;
}

void stacks__free(struct stacks *s)
{
	if (!s)
		return;
	if (s->room)
		free(*s->room);
	free(s->room);
	free(s->frames);
	for (u32 i = 0; i < s->n_codes; i++)
		free(s->codes[i].demangled);
	free(s->codes);
	free(s);
}

u32 stacks__count(const struct stacks *s)
{
	return s ? s->n : 0;
}

u32 stacks__id(const struct stacks *s, u32 i)
{
	return s->frames[i].id;
}

u32 stacks__broken(const struct stacks *s)
{
	return s ? s->broken : 0;
}

const struct stack_frame *stacks__frame(const struct stacks *s, u32 id)
{
	u32 i = s ? index_of(s, id) : NONE;

	return i == NONE ? NULL : &s->frames[i].frame;
}

u32 stacks__depth(const struct stacks *s, u32 id)
{
	u32 i = s ? index_of(s, id) : NONE;

	return i == NONE ? 0 : s->frames[i].depth;
}

void *stacks__room(const struct stacks *s, u32 id, size_t size)
{
	u32 i = s ? index_of(s, id) : NONE;

	if (i != NONE && !*s->room)
		*s->room = calloc(s->n, size);
	return i != NONE && *s->room ? *s->room + i * size : NULL;
}

u32 stacks__top_user(const struct stacks *s, u32 id)
{
	u32 i = s ? index_of(s, id) : NONE;

	if (i == NONE)
		return id;
	return s->frames[i].user ? s->frames[i].user : s->frames[i].generated ? s->frames[i].generated : id;
}

u32 stacks__path(const struct stacks *s, u32 id, u32 *ids, u32 max)
{
	u32 i = s ? index_of(s, id) : NONE, n;

	if (i == NONE)
		return 0;
	n = s->frames[i].depth < max ? s->frames[i].depth : max;
	for (u32 at = n; at--; i = s->frames[i].caller)
		ids[at] = s->frames[i].id;
	return n;
}
