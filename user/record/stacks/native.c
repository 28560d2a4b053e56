// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwinds native stacks. Frames are numbered here, with the highest bit set; BPF numbers Python frames without it. On
 * top of a Python stack only the frames inside of its innermost interpreter loop are kept: those between outer Python
 * frames add little.
 */
#include "record/stacks/native.h"

#include "core/meta.h"
#include "core/native.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/native_code.h"
#include "util/recent.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX  32768 /* frames that are known, in one generation */
#define FRAMES_FEW  64 /* for tests */
#define DEPTH_MAX   256
#define PYTHON_MAX  64 /* frames on top of a Python stack; with more of them it is another stack */
#define OWN_NUMBERS 0x80000000u
#define CODE_CUT    0xffffffffu

struct frame_key {
	u32 caller, code;
	u64 offset;
};

struct native {
	struct session *session;
	struct native_code *code;
	struct recent frames; /* struct frame_key -> its number */
	u32 last_frame; /* the id assigned last */
	struct {
		u64 n, first, last;
	} unread; /* stacks with functions that have no name because their process has ended; not counted as losses yet */
};

/* The state of an unwinding. */
struct walk {
	const struct native_stack *raw;
	u32 links; /* number of links received */
	u32 link; /* index of the link at link_addr */
	u64 link_addr;
	u64 pc, sp, bp;
};

static struct native *new_native(struct session *s)
{
	struct native *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->session = s;
	n->code = native_code__new(s);
	recent__init(&n->frames, sizeof(struct frame_key), sizeof(u32),
		     session__test_switch("small-tables") ? FRAMES_FEW : FRAMES_MAX);
	if (n->code)
		return n;
	native__free(n);
	return NULL;
}

void native__free(struct native *n)
{
	if (!n)
		return;
	native_code__free(n->code);
	recent__free(&n->frames);
	free(n);
}

struct native *native__of(struct session *s)
{
	if (!s->native)
		s->native = new_native(s);
	return s->native;
}

void native__mapped(struct native *n, const struct mapping *m)
{
	native_code__mapped(n->code, m);
}

u32 native__function(struct native *n, u32 pid, u64 time, u64 *address)
{
	struct native_thread t = { .pid = pid, .time = time };
	struct native_place p;

	native_code__at(n->code, &t, *address, false, &p);
	*address = p.offset;
	return p.code;
}

static void count_unread(struct native *n)
{
	const struct schema_family *f = n->unread.n ? schema__family(n->session->embedded.schema, "sample") : NULL;

	if (f)
		losses__add(n->session, f->id, LOSS_UNKNOWN, n->unread.n, n->unread.first, n->unread.last, 0);
	n->unread.n = 0;
}

void native__tick(struct native *n, u64 now)
{
	count_unread(n);
	native_code__tick(n->code, now);
}

void native__finish(struct native *n)
{
	native_code__finish(n->code);
}

void native__trim(struct native *n)
{
	native_code__trim(n->code);
	recent__clear(&n->frames);
}

void native__sizes(const struct native *n, table_size_fn *fn, void *arg)
{
	native_code__sizes(n->code, fn, arg);
	fn(&(struct table_size){ .name = "native frames",
				 .entries = recent__entries(&n->frames),
				 .max = 2 * n->frames.max,
				 .bytes = recent__bytes(&n->frames),
				 .evicted = n->frames.evicted },
	   arg);
}

/* Finds the link of the chain at an address of the stack; their addresses increase. */
static bool link_at(struct walk *w, u64 addr, u64 *link)
{
	while (w->link < w->links && w->link_addr < addr) {
		u64 distance = NATIVE_DISTANCE(w->raw->chain[w->link]);

		if (!distance)
			return false;
		w->link_addr += distance;
		w->link++;
	}
	if (w->link >= w->links || w->link_addr != addr)
		return false;
	*link = w->raw->chain[w->link];
	return true;
}

/* Reads a word of the stack, from its newest part or from a frame with a frame pointer. */
static bool read_word(struct walk *w, u64 addr, u64 *out)
{
	u64 at = addr - w->raw->sp, link;

	if (w->raw->window >= sizeof(*out) && at <= w->raw->window - sizeof(*out)) {
		memcpy(out, w->raw->stack + at, sizeof(*out));
		return true;
	}
	if (link_at(w, addr - 8, &link)) {
		*out = NATIVE_ADDRESS(link);
		return true;
	}
	if (!link_at(w, addr, &link) || !NATIVE_DISTANCE(link))
		return false;
	*out = addr + NATIVE_DISTANCE(link);
	return true;
}

enum step { STEP_ON, STEP_END, STEP_LOST };

/* Unwinds by the frame pointer: for code without unwind tables. */
static enum step by_frame_pointer(struct walk *w)
{
	u64 pc, bp;

	if (w->bp < w->sp || !read_word(w, w->bp + 8, &pc))
		return STEP_LOST;
	if (!read_word(w, w->bp, &bp))
		bp = 0;
	w->pc = pc;
	w->sp = w->bp + 16;
	w->bp = bp;
	return pc ? STEP_ON : STEP_END;
}

static enum step by_table(struct walk *w, const struct elf_unwind *u)
{
	u64 cfa = (u->by_frame_pointer ? w->bp : w->sp) + (u64)(s64)u->cfa, pc, bp = w->bp;
	u64 slot = cfa + (u64)(s64)u->frame_pointer;

	if (u->outermost)
		return STEP_END;
	/*
	 * Read the saved value first, because the chain is only read upwards. A slot below the stack pointer has been
	 * popped, and the register has the caller's value: at a function's last instruction the tables still name the
	 * slot.
	 */
	if (u->saved && slot >= w->sp && !read_word(w, slot, &bp))
		bp = 0;
	if (cfa <= w->sp || !read_word(w, cfa - 8, &pc))
		return STEP_LOST;
	w->pc = pc;
	w->sp = cfa;
	w->bp = bp;
	return pc ? STEP_ON : STEP_END;
}

/* Unwinds from the innermost frame on; *lost: there are more frames, which could not be found. */
static u32 unwind(struct native *n, const struct native_thread *t, u32 links, struct native_place *places, bool *lost)
{
	struct walk w = { .raw = t->raw,
			  .links = links,
			  .link_addr = t->raw->bp,
			  .pc = t->raw->ip,
			  .sp = t->raw->sp,
			  .bp = t->raw->bp };
	u32 max = t->python ? PYTHON_MAX : DEPTH_MAX, depth = 0;
	enum step step = STEP_ON;

	while (step == STEP_ON && depth < max) {
		struct native_place *p = &places[depth];

		native_code__at(n->code, t, w.pc, depth > 0, p);
		if (t->python && p->interpreter)
			return depth;
		/* in a stripped file the interpreter loop's cold parts have no name, but their caller has */
		if (t->python && p->python_call && depth && !places[depth - 1].named)
			return depth - 1;
		/* an address that is not code is not a return address */
		if (depth && !p->mapped)
			break;
		depth++;
		step = p->unwind_error ? by_frame_pointer(&w) : by_table(&w, &p->unwind);
	}
	*lost = step != STEP_END;
	/* the whole stack has no interpreter, so it does not belong to this Python stack */
	if (t->python && (step == STEP_END || depth == max)) {
		*lost = depth > 0;
		return depth ? 1 : 0;
	}
	return depth;
}

/*
 * Removes the frames in which libc starts a program or a thread: they are of no interest, and not always reached. If
 * the outermost frames were not found and all others are of libc, these are calls of the program, as in a long printf.
 */
static u32 without_start(const struct native_place *places, u32 n, bool *lost)
{
	u32 kept = n;

	while (kept > 1 && places[kept - 1].starts)
		kept--;
	if (*lost && kept == 1 && places[0].starts)
		return n;
	if (kept < n)
		*lost = false;
	return kept;
}

/*
 * Returns the id of a frame. A frame that was evicted gets a new id and is written again. 0: all ids are used up, or
 * no memory.
 */
static u32 frame_id(struct native *n, enum frame_kind kind, u32 caller, u32 code, u64 offset)
{
	struct frame_key key = { .caller = caller, .code = kind == FRAME_CUT ? CODE_CUT : code, .offset = offset };
	struct meta_frame e = {
		.event = { .time = session__now(n->session), .id = ID_meta_frame },
		.offset = offset,
		.caller = caller,
		.code = code,
		.kind = kind,
	};
	bool left = n->last_frame < OWN_NUMBERS - 1;
	u32 *number = left ? recent__get(&n->frames, &key) : recent__find(&n->frames, &key);

	if (!number)
		return 0;
	if (*number)
		return *number;
	e.frame = *number = OWN_NUMBERS | ++n->last_frame;
	/* the stack of a task has lines, and no place in the bytecode */
	if (kind == FRAME_PYTHON) {
		e.line = (u32)offset;
		e.offset = 0;
	}
	session__emit(n->session, &e, sizeof(e));
	return *number;
}

u32 native__coroutine(struct native *n, u32 caller, u32 code, u32 line)
{
	return frame_id(n, FRAME_PYTHON, caller, code, line);
}

static void note_unread(struct native *n, const struct native_place *places, u32 depth, u64 time)
{
	for (u32 i = 0; i < depth; i++) {
		if (!places[i].is_unread)
			continue;
		if (!n->unread.n++)
			n->unread.first = n->unread.last = time;
		if (time < n->unread.first)
			n->unread.first = time;
		if (time > n->unread.last)
			n->unread.last = time;
		return;
	}
}

u32 session__native_stack(struct session *s, const struct native_thread *t)
{
	struct native_place places[DEPTH_MAX];
	u32 links = t->raw->links, depth, id = t->python;
	struct native *n = native__of(s);
	bool lost = false;

	if (!n || t->size < offsetof(struct native_stack, chain) || !t->raw->ip || t->raw->window > NATIVE_WINDOW)
		return t->python;
	if (links > (t->size - offsetof(struct native_stack, chain)) / sizeof(u64))
		links = (t->size - offsetof(struct native_stack, chain)) / sizeof(u64);
	depth = unwind(n, t, links, places, &lost);
	note_unread(n, places, depth, t->time);
	if (!t->python) {
		depth = without_start(places, depth, &lost);
		if (lost)
			id = frame_id(n, FRAME_CUT, 0, 0, 0);
	}
	/* a placeholder between the Python frames and the frames that were found */
	if (t->python && lost && depth)
		id = frame_id(n, FRAME_NATIVE, id, native_code__missing(n->code), 0);
	for (u32 i = depth; i > 0 && (id || !t->python); i--) {
		u32 frame = frame_id(n, FRAME_NATIVE, id, places[i - 1].code, places[i - 1].offset);

		if (!frame) {
			session__lost(n->session, "sample", LOSS_MAP_FULL, 1);
			return t->python;
		}
		id = frame;
	}
	return id;
}
