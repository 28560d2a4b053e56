// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwinds native stacks. Frames are numbered here, with the highest bit set; BPF numbers Python frames without it.
 * Native frames are put between the frames of a Python stack: each loop of the interpreter on the native stack runs the
 * Python frames from one that native code called (RAW_FRAME_ENTRY) inwards. The interpreter's own functions are left
 * out there, and so are those of which no loop is known that called them. Python frames inside of native ones get
 * numbers here, too.
 */
#include "record/stacks/native.h"

#include "core/meta.h"
#include "core/native.h"
#include "core/stack.h"
#include "record/drain/losses.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "record/stacks/native_code.h"
#include "util/recent.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX  32768 /* frames that are known, in one generation */
#define FRAMES_FEW  64 /* for tests */
#define DEPTH_MAX   256
#define INLINED_MAX 128 /* inlined functions of a stack */
#define PYTHON_MAX  64 /* frames on top of a Python stack; with more of them it is another stack */
#define OWN_NUMBERS 0x80000000u
#define CODE_CUT    0xffffffffu

struct frame_key {
	u32 caller, code, line;
	u32 unused;
	u64 offset;
};

/* A frame of a Python stack, which BPF has numbered. */
struct python_frame {
	u64 offset;
	u32 caller, code, line;
	bool is_entry; /* native code called it */
};

struct native {
	struct session *session;
	struct native_code *code;
	struct recent frames; /* struct frame_key -> its number */
	struct recent python; /* u32 number -> struct python_frame */
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
	bool after_call; /* pc is a return address */
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
	recent__init(&n->python, sizeof(u32), sizeof(struct python_frame), n->frames.max);
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
	recent__free(&n->python);
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
	recent__clear(&n->python);
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
	fn(&(struct table_size){ .name = "Python frames",
				 .entries = recent__entries(&n->python),
				 .max = 2 * n->python.max,
				 .bytes = recent__bytes(&n->python),
				 .evicted = n->python.evicted },
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

static enum step step_over(struct walk *w, const struct native_place *p)
{
	w->after_call = true;
	return p->unwind_error ? by_frame_pointer(w) : by_table(w, &p->unwind);
}

/*
 * Unwinds up to the next loop of the interpreter if t has a Python stack, else to the end. Returns the number of
 * frames, of which there are at most `max`. STEP_ON: there are more of them, or a loop (*is_loop). after_loop: the
 * first frame has called a loop.
 */
static u32 unwind(struct native *n, const struct native_thread *t, struct walk *w, struct native_place *places, u32 max,
		  bool after_loop, enum step *step, bool *is_loop)
{
	u32 depth = 0;

	*is_loop = false;
	for (*step = STEP_ON; *step == STEP_ON && depth < max; depth++) {
		struct native_place *p = &places[depth];

		native_code__at(n->code, t, w->pc, w->after_call, p);
		*is_loop = t->python && p->interpreter;
		if (*is_loop)
			return depth;
		/* in a stripped file the interpreter loop's cold parts have no name, but their caller has */
		*is_loop = t->python && p->python_call && depth > after_loop && !places[depth - 1].named;
		if (*is_loop)
			return depth - 1;
		/*
		 * An address that is not code is not a return address. Behind a loop, frames count only if their order
		 * is certain: a frame pointer may lead past other loops.
		 */
		if (w->after_call && (!p->mapped || (after_loop && p->unwind_error))) {
			*step = STEP_LOST;
			return depth;
		}
		*step = step_over(w, p);
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
static u32 frame_id(struct native *n, enum frame_kind kind, u32 caller, u32 code, u64 offset, u32 line)
{
	struct frame_key key = {
		.caller = caller, .code = kind == FRAME_CUT ? CODE_CUT : code, .line = line, .offset = offset
	};
	struct meta_frame e = {
		.event = { .time = session__now(n->session), .id = ID_meta_frame },
		.offset = offset,
		.caller = caller,
		.code = code,
		.line = line,
		.kind = kind,
	};
	bool left = n->last_frame < OWN_NUMBERS - 1;
	u32 *number = left ? recent__get(&n->frames, &key) : recent__find(&n->frames, &key);

	if (!number)
		return 0;
	if (*number)
		return *number;
	e.frame = *number = OWN_NUMBERS | ++n->last_frame;
	session__emit(n->session, &e, sizeof(e));
	return *number;
}

u32 native__coroutine(struct native *n, u32 caller, u32 code, u32 line)
{
	/* the stack of a task has lines, and no place in the bytecode */
	return frame_id(n, FRAME_PYTHON, caller, code, 0, line);
}

void native__python(struct native *n, const struct raw_frame *r, u32 code, u32 line)
{
	struct python_frame *f = recent__get(&n->python, &r->frame);

	if (f)
		*f = (struct python_frame){
			.offset = r->offset,
			.caller = r->caller,
			.code = code,
			.line = line,
			.is_entry = r->kind & RAW_FRAME_ENTRY,
		};
}

/* Native frames, innermost first, and the Python frames between them. */
struct mixed {
	struct native_place places[DEPTH_MAX];
	u16 inside[DEPTH_MAX]; /* of each native frame: the number of Python frames inside of it */
	u32 depth;
	u32 python[STACK_FRAMES]; /* innermost first: those that are followed, and the caller of the last one */
	u32 n_python;
};

/* Follows the Python frames of one loop of the interpreter. Returns whether another frame called the loop. */
static bool follow_python(struct native *n, struct mixed *m)
{
	const struct python_frame *f;
	bool is_entry = false;

	while (!is_entry) {
		f = recent__find(&n->python, &m->python[m->n_python]);
		if (!f || !f->caller || m->n_python + 1 == STACK_FRAMES)
			return false;
		is_entry = f->is_entry;
		m->python[++m->n_python] = f->caller;
	}
	return true;
}

/* Compiled code, such as Nuitka's, makes Python frames without a loop of the interpreter. */
static bool has_loop(struct native *n, u32 python)
{
	const struct python_frame *f;

	while ((f = recent__find(&n->python, &python)) && !f->is_entry && f->caller)
		python = f->caller;
	return !f || f->is_entry;
}

/* Leaves the loop at which the unwinding is. */
static enum step leave_loop(struct native *n, const struct native_thread *t, struct walk *w)
{
	enum step step = STEP_ON;
	struct native_place p;
	bool is_part = true;

	while (step == STEP_ON && is_part) {
		native_code__at(n->code, t, w->pc, w->after_call, &p);
		/* the caller of a loop without a name: it was left already */
		if (!p.interpreter)
			return step;
		is_part = p.interpreter == INTERPRETER_PART;
		step = step_over(w, &p);
	}
	return step;
}

/* Adds the native frames between the loops of the interpreter, from the innermost loop on, at which w is. */
static void add_between(struct native *n, const struct native_thread *t, struct walk *w, struct mixed *m)
{
	bool is_loop = true;
	enum step step;
	u32 max, depth;

	while (is_loop && m->depth < DEPTH_MAX && follow_python(n, m) && leave_loop(n, t, w) == STEP_ON) {
		max = DEPTH_MAX - m->depth < PYTHON_MAX ? DEPTH_MAX - m->depth : PYTHON_MAX;
		depth = unwind(n, t, w, m->places + m->depth, max, true, &step, &is_loop);
		for (u32 i = m->depth, end = i + depth; is_loop && i < end; i++) {
			if (m->places[i].is_runtime)
				continue;
			m->places[m->depth] = m->places[i];
			m->inside[m->depth++] = m->n_python;
		}
	}
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

/* Adds Python frames to the stack *id until `until` ones are left inside of it. Returns whether it could. */
static bool add_python(struct native *n, const struct mixed *m, u32 *left, u32 until, u32 *id)
{
	for (; *left > until; --*left) {
		const struct python_frame *f = recent__find(&n->python, &m->python[*left - 1]);

		*id = f ? frame_id(n, FRAME_PYTHON, *id, f->code, f->offset, f->line) : 0;
		if (!*id)
			return false;
	}
	return true;
}

/* Adds a native function and those inlined into it, of which the stack may have *max more. Returns the id; 0: none. */
static u32 add_native(struct native *n, const struct native_place *p, u32 caller, u32 *max)
{
	u32 id = frame_id(n, FRAME_NATIVE, caller, p->code, p->offset, p->line);

	for (u32 i = 0; id && i < p->n_inlined && *max; i++, --*max)
		id = frame_id(n, FRAME_NATIVE, id, p->inlined[i].code, p->offset, p->inlined[i].line);
	return id;
}

/* Adds all frames to the stack *id, that of the outermost one's caller. Returns whether it could. */
static bool add_frames(struct native *n, const struct mixed *m, u32 *id)
{
	u32 left = m->depth ? m->inside[m->depth - 1] : 0, inlined = INLINED_MAX;

	for (u32 i = m->depth; i-- > 0;) {
		if (!add_python(n, m, &left, m->inside[i], id))
			return false;
		*id = add_native(n, &m->places[i], *id, &inlined);
		if (!*id)
			return false;
	}
	return add_python(n, m, &left, 0, id);
}

u32 session__native_stack(struct session *s, const struct native_thread *t)
{
	struct walk w = { .raw = t->raw, .link_addr = t->raw->bp, .pc = t->raw->ip, .sp = t->raw->sp, .bp = t->raw->bp };
	struct mixed m = { .python = { t->python } };
	struct native *n = native__of(s);
	bool lost, is_loop, is_compiled;
	enum step step;
	u32 id;

	if (!n || t->size < offsetof(struct native_stack, chain) || !t->raw->ip || t->raw->window > NATIVE_WINDOW)
		return t->python;
	w.links = (t->size - offsetof(struct native_stack, chain)) / sizeof(u64);
	if (w.links > t->raw->links)
		w.links = t->raw->links;
	m.depth = unwind(n, t, &w, m.places, t->python ? PYTHON_MAX : DEPTH_MAX, false, &step, &is_loop);
	lost = !is_loop && step != STEP_END;
	is_compiled = t->python && !is_loop && !has_loop(n, t->python);
	if (is_loop) {
		add_between(n, t, &w, &m);
	} else if (t->python && (is_compiled || step == STEP_END || m.depth == PYTHON_MAX)) {
		/* no loop says which of the frames the innermost Python frame called */
		lost = m.depth > 0 && !is_compiled;
		m.depth = m.depth ? 1 : 0;
	}
	note_unread(n, m.places, m.depth, t->time);
	id = m.depth ? m.python[m.inside[m.depth - 1]] : t->python;
	if (!t->python) {
		m.depth = without_start(m.places, m.depth, &lost);
		if (lost)
			id = frame_id(n, FRAME_CUT, 0, 0, 0, 0);
	}
	/* a placeholder between the Python frames and the frames that were found */
	if (t->python && lost && m.depth)
		id = frame_id(n, FRAME_NATIVE, id, native_code__missing(n->code), 0, 0);
	if (add_frames(n, &m, &id))
		return id;
	session__lost(n->session, "sample", LOSS_MAP_FULL, 1);
	return t->python;
}
