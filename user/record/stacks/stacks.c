// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns raw records of frames and code (core/stack.h) into meta_frame and meta_code. A code object arrives in parts.
 * Frames may arrive before it, as they go through another CPU's ring; they wait for it.
 *
 * Code objects are stored until there are too many. Then BPF forgets all of them at once: the keys of its tables
 * contain an epoch, which is incremented here. From then on it numbers code anew, with other ids, and entries with
 * the old ids are freed some time later, when no record with one can arrive any more. Code of a process that has
 * ended is freed without that: BPF has an id for each process, so no later record names that code.
 */
#include "record/stacks/stacks.h"

#include "core/stack.h"
#include "python/lines.h"
#include "python/text.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/line_tables.h"
#include "record/stacks/native.h"
#include "record/stacks/python_functions.h"
#include "record/stacks/source_texts.h"
#include "record/stacks/tasks.h"
#include "sonde.skel.h"
#include "util/array.h"

#include <stdlib.h>
#include <string.h>

#define CODE_BYTES_MAX (1 << 20) /* of one part of a code object */
/* of all code objects together, and of waiting frames: targets can create any number */
#define CODES_MAX     65536
#define CODES_FEW     64 /* for tests */
#define BYTES_MAX     (24 << 20) /* line tables and texts */
#define FUNCTIONS_MAX 32768 /* in one generation */
/* records of the previous epoch, or of a process that has ended, may arrive for this long */
#define FADING_NS   3000000000ULL
#define ENDED_EVERY 5000000000ULL /* ns: interval of the check for ended processes */
#define WAITING_MAX 65536

struct part {
	u8 *data;
	u32 total, have;
	u8 width;
	bool is_complete;
	bool is_readable; /* it could be read, and arrived completely */
};

/* The parts of a code object that is not complete yet. */
struct code_parts {
	struct part parts[RAW_CODE_PARTS];
	struct raw_frame *waiting; /* frames that arrived before it was complete */
	u32 n_waiting;
};

/* A code object of a process, by the id that BPF assigned. */
struct code {
	struct code_parts *parts; /* NULL: it is complete, or nothing has arrived yet */
	struct line_table *lines; /* set when it is complete; NULL: unknown */
	u32 pid;
	u32 line;
	u32 id; /* id of its meta_code; 0: it is not complete */
	u32 source; /* see source_texts__file() */
	u16 version;
};

struct stack_records {
	struct map codes; /* by u32, BPF's id */
	struct map fading; /* the same, of the previous epoch */
	struct map ended; /* pid: u64, time at which its end was noticed, ns */
	u64 next_ended;
	struct line_tables lines;
	struct python_functions functions;
	struct source_texts sources;
	u32 max; /* codes */
	u64 bytes; /* in parts of incomplete code objects, including those of the previous epoch */
	u64 turned; /* time of the last change of the epoch; 0: no old entries are left */
	u64 evicted;
	u32 n_waiting;
};

static void init_codes(struct map *m)
{
	map__init(m, sizeof(u32), sizeof(struct code));
}

struct stack_records *stack_records__new(void)
{
	struct stack_records *st = calloc(1, sizeof(*st));
	bool few = session__test_switch("small-tables");

	if (!st)
		return NULL;
	init_codes(&st->codes);
	init_codes(&st->fading);
	map__init(&st->ended, sizeof(u32), sizeof(u64));
	line_tables__init(&st->lines);
	source_texts__init(&st->sources);
	python_functions__init(&st->functions, few ? CODES_FEW : FUNCTIONS_MAX);
	st->max = few ? CODES_FEW : CODES_MAX;
	return st;
}

static void free_part(struct stack_records *st, struct part *p)
{
	if (p->data)
		st->bytes -= p->total;
	free(p->data);
	p->data = NULL;
}

static void free_parts(struct stack_records *st, struct code *c)
{
	if (!c->parts)
		return;
	for (u32 i = 0; i < RAW_CODE_PARTS; i++)
		free_part(st, &c->parts->parts[i]);
	st->n_waiting -= c->parts->n_waiting;
	free(c->parts->waiting);
	free(c->parts);
	c->parts = NULL;
}

static void free_code(struct stack_records *st, struct code *c)
{
	free_parts(st, c);
	line_tables__put(&st->lines, c->lines);
	c->lines = NULL;
}

static void free_codes(struct stack_records *st, struct map *codes)
{
	for (u32 i = 0; i < codes->n; i++)
		free_code(st, map__value(codes, i));
	map__free(codes);
	init_codes(codes);
}

void stack_records__free(struct stack_records *st)
{
	if (!st)
		return;
	free_codes(st, &st->codes);
	free_codes(st, &st->fading);
	map__free(&st->ended);
	line_tables__free(&st->lines);
	python_functions__free(&st->functions);
	source_texts__free(&st->sources);
	free(st);
}

static void write_frame(struct session *s, const struct raw_frame *r, u32 code, u32 line, u64 offset)
{
	struct meta_frame e = {
		.event = r->event,
		.offset = offset,
		.frame = r->frame,
		.caller = r->caller,
		.code = code,
		.line = line,
		.kind = r->kind & ~RAW_FRAME_ENTRY,
	};

	e.event.id = ID_meta_frame;
	e.event.flags = 0;
	session__emit(s, &e, sizeof(e));
}

/* Writes the frame with only its address, and counts it. */
static void unresolved_frame(struct session *s, const struct raw_frame *r)
{
	losses__add(s, 0, LOSS_READ, 1, r->event.time, r->event.time, 0);
	write_frame(s, r, 0, 0, r->offset);
}

static void python_frame(struct session *s, const struct raw_frame *r, const struct code *c)
{
	const struct line_table *l = c->lines;
	u32 line = l || (s64)r->offset < 0 ?
			   python__line(c->version, l ? l->data : NULL, l ? l->size : 0, c->line, r->offset) :
			   0;

	source_texts__line(&s->stacks->sources, c->source, line);
	write_frame(s, r, c->id, line, r->offset);
	if (s->native)
		native__python(s->native, r, c->id, line);
}

/* Writes a native frame. r->code is the tgid, r->offset an address: of the innermost frame, or a return address. */
static void native_frame(struct session *s, const struct raw_frame *r)
{
	u64 offset = r->offset;
	u32 code = native__of(s) ? native__function(s->native, r->code, r->event.time, &offset) : 0;

	write_frame(s, r, code, 0, offset);
}

/* Returns the parts of an incomplete code object; NULL: no memory. */
static struct code_parts *parts_of(struct code *c)
{
	if (!c->parts)
		c->parts = calloc(1, sizeof(*c->parts));
	return c->parts;
}

static bool wait_for(struct stack_records *st, struct code *c, const struct raw_frame *r)
{
	struct code_parts *p = st->n_waiting < WAITING_MAX ? parts_of(c) : NULL;

	if (!p)
		return false;
	if (!array__push(p->waiting, p->n_waiting, *r))
		return false;
	st->n_waiting++;
	return true;
}

/* Returns the code object with an id, added if it is new; NULL: no memory. */
static struct code *code_of(struct stack_records *st, u32 id, u32 pid)
{
	struct code *c = map__find(&st->codes, &id);

	if (!c)
		c = map__find(&st->fading, &id);
	if (!c)
		c = map__get(&st->codes, &id);
	if (c && !c->pid)
		c->pid = pid;
	return c;
}

static void on_frame(struct session *s, const struct raw_frame *r)
{
	struct code *c;

	if (r->kind == FRAME_NATIVE) {
		native_frame(s, r);
		return;
	}
	if ((r->kind & ~RAW_FRAME_ENTRY) != FRAME_PYTHON || !r->code) {
		write_frame(s, r, 0, 0, r->offset);
		return;
	}
	c = code_of(s->stacks, r->code, r->event.pid);
	if (c && c->id)
		python_frame(s, r, c);
	else if (!c || !wait_for(s->stacks, c, r))
		unresolved_frame(s, r);
}

/* Returns a malloc'ed text, or NULL. */
static char *text_of(const struct part *p)
{
	return p->is_readable ? python__utf8(p->data, p->total, p->width) : NULL;
}

static void give_up_frames(struct session *s, struct code *c)
{
	struct code_parts *p = c->parts;

	for (u32 i = 0; p && i < p->n_waiting; i++)
		unresolved_frame(s, &p->waiting[i]);
	s->stacks->n_waiting -= p ? p->n_waiting : 0;
	if (p)
		p->n_waiting = 0;
}

/* Writes frames whose code object never arrived completely without it. */
static void give_up_waiting(struct session *s, struct map *codes)
{
	for (u32 i = 0; i < codes->n; i++)
		give_up_frames(s, map__value(codes, i));
}

/* Frees the entries of the previous epoch. Call it when no record of that epoch can arrive any more. */
static void end_fading(struct session *s)
{
	struct stack_records *st = s->stacks;

	give_up_waiting(s, &st->fading);
	st->evicted += st->fading.n;
	free_codes(st, &st->fading);
	st->turned = 0;
}

/* Begins a new epoch: BPF numbers all code anew from here on. */
static void begin_epoch(struct session *s, u64 now)
{
	struct stack_records *st = s->stacks;

	s->embedded.skel->bss->stack_epoch++;
	st->fading = st->codes;
	init_codes(&st->codes);
	st->turned = now;
}

/* Returns whether the process has ended long enough ago; answers caches the result for each process. */
static bool is_over(struct stack_records *st, struct map *answers, u32 pid, u64 now)
{
	u8 *answer = map__get(answers, &pid);
	u64 *gone;

	if (!answer || !pid)
		return false;
	if (!*answer)
		*answer = session__has_ended(pid) ? 2 : 1;
	if (*answer == 1) {
		map__remove(&st->ended, &pid);
		return false;
	}
	gone = map__get(&st->ended, &pid);
	if (gone && !*gone)
		*gone = now;
	return gone && now - *gone > FADING_NS;
}

static void forget_ended(struct session *s, u64 now)
{
	struct stack_records *st = s->stacks;
	struct map asked;

	map__init(&asked, sizeof(u32), sizeof(u8));
	/* backward, because removing an entry moves the last one to its index */
	for (u32 i = st->codes.n; i-- > 0;) {
		struct code *c = map__value(&st->codes, i);
		u32 id = *(const u32 *)map__key(&st->codes, i);

		if (!is_over(st, &asked, c->pid, now))
			continue;
		give_up_frames(s, c);
		free_code(st, c);
		map__remove(&st->codes, &id);
		st->evicted++;
	}
	for (u32 i = st->ended.n; i-- > 0;) {
		u32 pid = *(const u32 *)map__key(&st->ended, i);

		if (now - *(const u64 *)map__value(&st->ended, i) > 2 * ENDED_EVERY)
			map__remove(&st->ended, &pid);
	}
	map__free(&asked);
}

void stack_records__tick(struct session *s, u64 now)
{
	struct stack_records *st = s->stacks;

	source_texts__tick(s, &st->sources);
	if (now >= st->next_ended && !drain__has_more(&s->drain)) {
		forget_ended(s, now);
		st->next_ended = now + ENDED_EVERY;
	}
	if (st->turned && now - st->turned > FADING_NS && !drain__has_more(&s->drain))
		end_fading(s);
	if (!st->turned && (st->codes.n >= st->max || st->bytes + st->lines.bytes > BYTES_MAX))
		begin_epoch(s, now);
}

void stack_records__trim(struct session *s, u64 now)
{
	if (!s->stacks->turned)
		begin_epoch(s, now);
	recent__clear(&s->stacks->functions.ids);
}

void stack_records__sizes(const struct stack_records *st, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "Python code objects",
				 .entries = st->codes.n + st->fading.n,
				 .bytes =
					 st->bytes + st->lines.bytes + map__bytes(&st->codes) + map__bytes(&st->fading),
				 .max = 2 * st->max,
				 .evicted = st->evicted },
	   arg);
	python_functions__sizes(&st->functions, fn, arg);
	source_texts__sizes(&st->sources, fn, arg);
	fn(&(struct table_size){ .name = "frames that wait for their code",
				 .entries = st->n_waiting,
				 .max = WAITING_MAX,
				 .bytes = st->n_waiting * sizeof(struct raw_frame) },
	   arg);
}

struct stack_function stack_records__function(struct session *s, u32 pid, const char *name, const char *file, u32 line)
{
	return (struct stack_function){
		.id = python_functions__id(s, &s->stacks->functions, session__intern(s, name),
					   session__intern(s, python_functions__path(s, file)), line),
		.source = source_texts__file(s, &s->stacks->sources, pid, file, 0),
	};
}

void stack_records__line(struct session *s, const struct stack_function *f, u32 line)
{
	source_texts__line(&s->stacks->sources, f->source, line);
}

void stack_records__source_line(struct session *s, u32 pid, const char *file, u32 line, u64 built)
{
	struct source_texts *t = &s->stacks->sources;

	source_texts__line(t, source_texts__file(s, t, pid, file, built), line);
}

static void code_is_whole(struct session *s, struct code *c)
{
	struct code_parts *p = c->parts;
	const struct part *lines = &p->parts[RAW_CODE_LINES], *path = &p->parts[RAW_CODE_FILE];
	char *name = text_of(&p->parts[RAW_CODE_NAME]), *file = text_of(path);
	struct stack_function f = stack_records__function(s, c->pid, name ? name : "", file ? file : "", c->line);
	u64 now = session__now(s);

	free(name);
	free(file);
	c->id = f.id;
	c->source = f.source;
	if (path->is_readable && tasks__is_event_loop(path->data, path->total))
		tasks__found(s, c->pid);
	for (u32 i = 0; i < RAW_CODE_PARTS; i++)
		if (!p->parts[i].is_readable)
			losses__add(s, 0, LOSS_READ, 1, now, now, 0);
	if (lines->is_readable)
		c->lines = line_tables__take(&s->stacks->lines, lines->data, lines->have);
	for (u32 i = 0; i < p->n_waiting; i++)
		python_frame(s, &p->waiting[i], c);
	free_parts(s->stacks, c);
}

static bool is_complete_code(const struct code_parts *p)
{
	for (u32 i = 0; i < RAW_CODE_PARTS; i++)
		if (!p->parts[i].is_complete)
			return false;
	return true;
}

/* Returns room for a part; NULL: there are too many bytes, and the part counts as one that could not be read. */
static u8 *part_room(struct stack_records *st, u32 total)
{
	u8 *data = st->bytes + st->lines.bytes + total <= 2 * BYTES_MAX ? malloc(total) : NULL;

	st->bytes += data ? total : 0;
	return data;
}

static void on_code(struct session *s, const struct raw_code *r, u32 size)
{
	struct code *c = code_of(s->stacks, r->code, r->event.pid);
	struct part *p;

	if (!c || c->id || r->part >= RAW_CODE_PARTS || r->size > size - offsetof(struct raw_code, data) ||
	    r->total > CODE_BYTES_MAX || !parts_of(c))
		return;
	p = &c->parts->parts[r->part];
	if (p->is_complete || r->at != p->have || r->size > r->total - p->have)
		return;
	c->line = r->line;
	c->version = r->version;
	p->width = r->width;
	if (!p->data && r->total) {
		p->total = r->total;
		p->data = part_room(s->stacks, r->total);
		p->is_complete = !p->data;
	}
	if (p->data && r->total == p->total) {
		memcpy(p->data + p->have, r->data, r->size);
		p->have += r->size;
	}
	p->is_complete |= !r->width || p->have == p->total;
	p->is_readable = p->is_complete && r->width && p->have == r->total;
	if (is_complete_code(c->parts))
		code_is_whole(s, c);
}

void stack_records__record(struct session *s, const void *record, u32 size)
{
	const struct event *e = record;

	if (!s->stacks)
		return;
	if (e->id == RAW_FRAME && size >= sizeof(struct raw_frame))
		on_frame(s, record);
	else if (e->id == RAW_CODE && size >= offsetof(struct raw_code, data))
		on_code(s, record, size);
}

void stack_records__finish(struct session *s)
{
	if (!s->stacks)
		return;
	give_up_waiting(s, &s->stacks->fading);
	give_up_waiting(s, &s->stacks->codes);
	source_texts__finish(s, &s->stacks->sources);
}
