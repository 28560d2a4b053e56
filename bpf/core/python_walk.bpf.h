/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk itself, for python.bpf.h. docs/python.md is the essay; in short: the thread's
 * state leads to its frames, each frame to its code object. What tells them apart
 * is hashed on the way, and a whole stack that was seen before has its id in a map. For
 * a new one the frames are looked up one by one from the outermost, and what is new
 * of them is sent.
 *
 * Functions take the task whose memory is read, NULL: the current one, without faults. Only sleepable
 * programs can read another task's; they define PYTHON_WALK_TASKS.
 */
#ifndef SONDE_PYTHON_WALK_BPF_H
#define SONDE_PYTHON_WALK_BPF_H

#include "core/stack.bpf.h"
#include "core/python.h"

#define PYTHON_GENERATOR 1 /* FRAME_OWNED_BY_GENERATOR in pycore_frame.h, 3.11 to 3.15 */
#define PYTHON_STATES	 8192 /* of threads, looked at in a search */
#define FRAME_WORDS	 16
#define CODE_WORDS	 32
#define CODE_READ	 (18 * 8) /* bytes: what is needed lies in them, in all versions */

/* A frame as it was walked. */
struct python_frame {
	u64 code; /* address */
	u64 check; /* tells code objects at one address apart */
	s64 offset; /* in the bytecode, bytes; -1: not begun */
};

struct python_code_key {
	u64 code;
	u64 check;
	u32 process; /* its id */
	u32 pad;
};

struct python_stack_key {
	u64 hash;
	u32 process;
	u32 pad;
};

/*
 * A walk. In a map and not on the stack: of what is on the stack the verifier knows the values, and would follow each
 * step of a loop for itself.
 */
struct python_cursor {
	u64 code_type;
	u64 frame; /* the next one's address, 0: that was all */
	u64 anchor; /* one that was before: met again, it is a cycle */
	u64 hash;
	u32 n, max;
	u32 bad; /* enum loss_reason */
	u32 cut;
};

/* Of each thread that walks: what it knows of itself, and room to work in. */
struct python_thread {
	u64 state; /* its PyThreadState when last looked for */
	u32 process; /* id of the process that had it */
	u32 busy; /* a walk is going on: an interrupt may want one more */
	struct python_cursor cursor;
	u32 left; /* frames yet to be looked up */
	u32 pad;
	u64 frame[FRAME_WORDS];
	u64 code[CODE_WORDS];
	u64 text[8];
	struct python_frame frames[STACK_FRAMES];
	struct raw_code raw;
};

struct python_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct python_process);
};

struct python_layouts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYTHON_LAYOUTS);
	__type(key, u32);
	__type(value, struct python_layout);
};

struct python_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_thread);
};

struct python_codes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct python_code_key);
	__type(value, u32);
};

struct python_stacks_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct python_stack_key);
	__type(value, u32);
};

extern struct python_processes_map python_processes SEC(".maps");
extern struct python_layouts_map python_layouts SEC(".maps");
extern struct python_threads_map python_threads SEC(".maps");
extern struct python_codes_map python_codes SEC(".maps");
extern struct python_stacks_map python_stacks SEC(".maps");

static __always_inline long python__read(void *to, u32 size, u64 from, struct task_struct *task)
{
	if (task)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

static __always_inline u64 python__word(u64 from, struct task_struct *task)
{
	u64 word;

	return python__read(&word, sizeof(word), from, task) ? 0 : word;
}

static __always_inline u64 python__mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static __always_inline u64 frame_word(const struct python_thread *t, u32 offset)
{
	return t->frame[offset / 8 & (FRAME_WORDS - 1)];
}

static __always_inline u64 code_word(const struct python_thread *t, u32 offset)
{
	return t->code[offset / 8 & (CODE_WORDS - 1)];
}

/* Length, hash if Python has needed it, and last characters of a text. */
static __always_inline u64 python__check_text(struct python_thread *t, const struct python_layout *l, u64 hash,
					      u64 text, struct task_struct *task)
{
	u64 *words = t->text, state, end;

	/* length, hash, state */
	if (python__read(words, 24, text + 16, task))
		return hash;
	hash = python__mix(python__mix(hash, words[0]), words[1]);
	if (words[1] != ~0ULL)
		return hash;
	state = words[2] >> l->str_kind_shift;
	end = text + (state & 16 ? l->str_ascii : l->str_compact) + words[0] * (state & 7);
	if (!python__read(words, 16, end - 16, task))
		hash = python__mix(python__mix(hash, words[0]), words[1]);
	return hash;
}

/*
 * What of a code object never changes, as a number. From 3.12 on each has a version that is given once. Before, its
 * texts and line table are looked into: new ones may come to lie at the addresses of old ones in the very same order.
 */
static __always_inline u64 python__check(struct python_thread *t, const struct python_layout *l,
					 struct task_struct *task)
{
	u64 name = code_word(t, l->code_name), file = code_word(t, l->code_file), lines = code_word(t, l->code_lines);
	u32 from = l->code_check;
	u64 hash = python__mix(python__mix(name, file), lines);

	for (u32 i = 0; i < 6; i++)
		hash = python__mix(hash, code_word(t, from + 8 * i));
	if (l->code_version)
		return hash;
	/* ob_size and the first bytes */
	if (!python__read(t->text, 32, lines + 16, task))
		hash = python__mix(python__mix(python__mix(hash, t->text[0]), t->text[2]), t->text[3]);
	return python__check_text(t, l, python__check_text(t, l, hash, name, task), file, task);
}

/* Where in its bytecode the frame is, bytes. */
static __always_inline s64 python__offset(const struct python_thread *t, const struct python_layout *l, u64 code)
{
	u64 instr = frame_word(t, l->frame_instr);

	if (l->instr_unit) {
		/* an int, in the upper or lower half of its word */
		s32 lasti = instr >> (l->frame_instr & 4 ? 32 : 0);

		return lasti < 0 ? -1 : lasti * (s64)l->instr_unit;
	}
	return instr - (code + l->code_start);
}

/* A frame that has not come to its first traceable instruction is none yet for Python either. */
static __always_inline bool python__incomplete(const struct python_layout *l, u64 code, s64 offset, u32 owner,
					       struct task_struct *task)
{
	s32 first;

	if (!l->code_traceable || owner == PYTHON_GENERATOR)
		return false;
	if (python__read(&first, sizeof(first), code + l->code_traceable, task))
		return false;
	return offset < first * 2LL;
}

struct python_walk {
	struct python_thread *t;
	const struct python_layout *l;
	struct task_struct *task;
};

static __always_inline long python__step(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct python_cursor *c = &t->cursor;
	u32 size = l->frame_size, owner, n = c->n;
	u64 frame = c->frame, code;
	s64 offset;

	if (!frame)
		return 1;
	if (n >= c->max || n >= STACK_FRAMES) {
		c->cut = 1;
		return 1;
	}
	if (size > sizeof(t->frame) || python__read(t->frame, size, frame, task)) {
		c->bad = LOSS_READ;
		return 1;
	}
	c->frame = frame_word(t, l->frame_previous);
	if (c->frame == c->anchor || (c->frame & 7)) {
		c->bad = LOSS_TORN;
		return 1;
	}
	owner = l->owner_skipped ? frame_word(t, l->frame_owner) >> (l->frame_owner & 7) * 8 & 0xff : 0;
	if (l->owner_skipped && owner >= l->owner_skipped)
		return 0;
	/* from 3.14 on the lowest bits are a tag */
	code = frame_word(t, l->frame_code) & ~7ULL;
	if (python__read(t->code, CODE_READ, code, task)) {
		c->bad = LOSS_READ;
		return 1;
	}
	if (t->code[1] != c->code_type) {
		c->bad = LOSS_TORN;
		return 1;
	}
	offset = python__offset(t, l, code);
	if (!n && python__incomplete(l, code, offset, owner, task))
		return 0;
	t->frames[n].code = code;
	t->frames[n].check = python__check(t, l, task);
	t->frames[n].offset = offset;
	c->hash = python__mix(python__mix(python__mix(c->hash, code), t->frames[n].check), offset);
	if (!(n & (n + 1)))
		c->anchor = frame;
	c->n = n + 1;
	return 0;
}

static long python__step_here(u32 i, struct python_walk *w)
{
	return python__step(w, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__step_there(u32 i, struct python_walk *w)
{
	return python__step(w, w->task);
}
#endif

static __always_inline u64 python__first_frame(const struct python_layout *l, u64 state, struct task_struct *task)
{
	u64 at = python__word(state + l->state_frame, task);

	if (l->by_cframe)
		at = at ? python__word(at + l->cframe_frame, task) : 0;
	return at;
}

struct python_text {
	struct python_thread *t;
	struct task_struct *task;
	u64 from;
	u32 total;
	u32 at;
	u32 failed;
};

static __always_inline long python__send_piece(struct python_text *x, struct task_struct *task)
{
	struct python_thread *t = x->t;
	u32 size = x->total - x->at;

	if (size > RAW_CODE_CHUNK)
		size = RAW_CODE_CHUNK;
	barrier_var(size);
	if (size > RAW_CODE_CHUNK)
		return 1;
	t->raw.at = x->at;
	t->raw.total = x->total;
	t->raw.size = size;
	if (size && python__read(t->raw.data, size, x->from + x->at, task)) {
		t->raw.total = t->raw.size = t->raw.at = size = 0;
		t->raw.width = 0;
		x->total = 0;
	}
	if (!emit(&t->raw, __builtin_offsetof(struct raw_code, data) + ((size + 7) & 0x7f8)))
		x->failed = 1;
	x->at += size;
	return x->failed || x->at >= x->total;
}

static long python__send_piece_here(u32 i, struct python_text *x)
{
	return python__send_piece(x, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__send_piece_there(u32 i, struct python_text *x)
{
	return python__send_piece(x, x->task);
}
#endif

#define PYTHON_TEXT_MAX	 8192
#define PYTHON_LINES_MAX (1 << 20)

/*
 * bpf_loop() with the function for the memory that is read. task is NULL or not when this is compiled, and only what
 * can read another task's memory knows the second function.
 */
#ifdef PYTHON_WALK_TASKS
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, task ? function##_there : function##_here, context, 0)
#else
#define PYTHON_LOOP(n, function, context, task) bpf_loop(n, function##_here, context, 0)
#endif

/* Where the characters of a str are; its width goes to the record. */
static __always_inline void python__text(struct python_thread *t, const struct python_layout *l, u64 object,
					 struct python_text *x, struct task_struct *task)
{
	u32 state, kind;

	x->total = 0;
	t->raw.width = 0;
	if (!object || python__read(t->text, 40, object, task))
		return;
	state = (u32)t->text[4] >> l->str_kind_shift;
	kind = state & 7;
	/* not compact, or no kind that there is */
	if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4))
		return;
	x->from = object + (state & 16 ? l->str_ascii : l->str_compact);
	t->raw.width = kind;
	if (t->text[2] > PYTHON_TEXT_MAX)
		t->text[2] = PYTHON_TEXT_MAX;
	x->total = t->text[2] * kind;
}

/* Sends a code object, as which the thread's room for code has been read; 0, or 1: the ring had no room. */
static __always_inline int python__send_part(struct python_thread *t, const struct python_layout *l, u32 part,
					     struct task_struct *task)
{
	struct python_text x = { .t = t, .task = task };
	u64 object;

	t->raw.part = part;
	if (part == RAW_CODE_LINES) {
		object = code_word(t, l->code_lines);
		t->raw.width = 1;
		x.from = object + l->bytes_data;
		x.total = python__word(object + 16, task);
		if (x.total > PYTHON_LINES_MAX)
			x.total = 0;
	} else {
		object = code_word(t, part == RAW_CODE_NAME ? l->code_name : l->code_file);
		python__text(t, l, object, &x, task);
	}
	PYTHON_LOOP(PYTHON_LINES_MAX / RAW_CODE_CHUNK, python__send_piece, &x, task);
	return x.failed;
}

static __always_inline int python__send_code(struct python_thread *t, const struct python_layout *l, u64 code, u32 id,
					     u32 pid, struct task_struct *task)
{
	if (python__read(t->code, CODE_READ, code, task))
		return 1;
	__builtin_memset(&t->raw, 0, __builtin_offsetof(struct raw_code, data));
	event__init(&t->raw.event, RAW_CODE, 0, bpf_ktime_get_ns());
	t->raw.event.pid = pid;
	t->raw.code = id;
	t->raw.line = code_word(t, l->code_line) >> (l->code_line & 4) * 8;
	t->raw.version = l->version;
	return python__send_part(t, l, RAW_CODE_NAME, task) || python__send_part(t, l, RAW_CODE_FILE, task) ||
	       python__send_part(t, l, RAW_CODE_LINES, task);
}

/* A function of its own for the verifier; the current task's memory. */
__weak __noinline int python__send_code_here(u64 code, u32 id, u32 layout, u32 pid)
{
	struct python_thread *t = bpf_task_storage_get(&python_threads, bpf_get_current_task_btf(), 0, 0);
	const struct python_layout *l = bpf_map_lookup_elem(&python_layouts, &layout);

	return t && l ? python__send_code(t, l, code, id, pid, NULL) : 1;
}

/* Builds the stack from its outermost frame. */
struct python_builder {
	struct python_thread *t;
	const struct python_layout *l;
	struct task_struct *task;
	u32 layout;
	u32 process;
	u32 pid;
	u32 caller;
	u32 failed;
};

static __always_inline u32 python__code_id(struct python_builder *b, const struct python_frame *f,
					   struct task_struct *task)
{
	struct python_code_key key = { .code = f->code, .check = f->check, .process = b->process };
	u32 *known = bpf_map_lookup_elem(&python_codes, &key), id;

	if (known)
		return *known;
	id = __sync_fetch_and_add(&stack_last_code, 1) + 1;
	if (task ? python__send_code(b->t, b->l, f->code, id, b->pid, task) :
		   python__send_code_here(f->code, id, b->layout, b->pid))
		return 0;
	bpf_map_update_elem(&python_codes, &key, &id, BPF_ANY);
	return id;
}

static __always_inline long python__build(struct python_builder *b, struct task_struct *task)
{
	u32 at = b->t->left - 1, code;
	struct python_frame *f;

	if (at >= STACK_FRAMES)
		return 1;
	f = &b->t->frames[at];
	b->t->left = at;
	code = python__code_id(b, f, task);
	b->caller = code ? stack__push(b->caller, FRAME_PYTHON, code, f->offset, b->pid) : 0;
	if (b->caller)
		return 0;
	b->failed = 1;
	return 1;
}

static long python__build_here(u32 i, struct python_builder *b)
{
	return python__build(b, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__build_there(u32 i, struct python_builder *b)
{
	return python__build(b, b->task);
}
#endif

static __always_inline u32 python__intern(struct python_thread *t, const struct python_process *p,
					  const struct python_layout *l, u32 pid, struct task_struct *task)
{
	const struct python_cursor *c = &t->cursor;
	struct python_stack_key key = { .hash = python__mix(c->hash, c->n << 1 | c->cut), .process = p->id };
	struct python_builder b = { .t = t, .l = l, .task = task, .layout = p->layout, .process = p->id, .pid = pid };
	u32 *known = bpf_map_lookup_elem(&python_stacks, &key);

	if (known)
		return *known;
	t->left = c->n;
	if (c->cut)
		b.caller = stack__push(0, FRAME_CUT, 0, 0, pid);
	PYTHON_LOOP(STACK_FRAMES, python__build, &b, task);
	if (b.failed)
		return 0;
	bpf_map_update_elem(&python_stacks, &key, &b.caller, BPF_ANY);
	return b.caller;
}

/* Walks through the thread states of all interpreters, for that of the thread with this FS base. */
struct python_search {
	const struct python_layout *l;
	struct task_struct *task;
	u64 interp; /* whose states are looked at, 0: those of the next one come */
	u64 next; /* interpreter */
	u64 state;
	u64 self;
	u64 gil; /* its interpreter's, 0: any */
	u64 found;
};

/* In PyThreadState._status, from 3.12 on: it is its thread's current one. */
static __always_inline bool python__active(const struct python_layout *l, u64 state, struct task_struct *task)
{
	return l->state_status && python__word(state + l->state_status, task) & 1 << 4;
}

/*
 * A thread has a state in each interpreter that it has entered. The active one is right; where none is, as in
 * a thread that waits, the first that runs something: new interpreters come first in their list.
 */
static __always_inline long python__search_step(struct python_search *s, struct task_struct *task)
{
	const struct python_layout *l = s->l;
	bool active;

	if (!s->state) {
		s->interp = s->next;
		if (!s->interp)
			return 1;
		s->state = python__word(s->interp + l->interp_threads, task);
		s->next = python__word(s->interp + l->interp_next, task);
		return 0;
	}
	if (python__word(s->state + l->state_thread_id, task) == s->self &&
	    (!s->gil || !l->interp_gil || python__word(s->interp + l->interp_gil, task) == s->gil) &&
	    python__first_frame(l, s->state, task)) {
		active = python__active(l, s->state, task);
		if (active || !s->found)
			s->found = s->state;
		if (active || !s->next)
			return 1;
	}
	s->state = python__word(s->state + l->state_next, task);
	return 0;
}

static long python__search_here(u32 i, struct python_search *s)
{
	return python__search_step(s, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__search_there(u32 i, struct python_search *s)
{
	return python__search_step(s, s->task);
}
#endif

/* Is it a thread state that is in its interpreter's list, and this thread's? */
static __always_inline bool python__is_own(const struct python_layout *l, u64 state, u64 self, u64 gil,
					   struct task_struct *task)
{
	u64 links[3]; /* prev, next, interp */

	if (!state || python__read(links, sizeof(links), state + l->state_next - 8, task) ||
	    python__word(state + l->state_thread_id, task) != self)
		return false;
	if (gil && l->interp_gil && python__word(links[2] + l->interp_gil, task) != gil)
		return false;
	return python__word(links[0] ? links[0] + l->state_next : links[2] + l->interp_threads, task) == state;
}

/* Is there one interpreter alone, so that a thread has one state? */
static __always_inline bool python__one_interpreter(const struct python_layout *l, u64 runtime,
						    struct task_struct *task)
{
	u64 interp = python__word(runtime + l->interpreters, task);

	return interp && !python__word(interp + l->interp_next, task);
}

/* The state of the thread with this FS base; the current task's is remembered. */
static __always_inline u64 python__own_state(struct python_thread *t, const struct python_process *p,
					     const struct python_layout *l, u64 self, u64 gil, struct task_struct *task)
{
	struct python_search s = { .l = l, .task = task, .self = self, .gil = gil };

	if (!task && t->process == p->id && python__is_own(l, t->state, self, gil, NULL) &&
	    (python__active(l, t->state, NULL) || python__one_interpreter(l, p->runtime, NULL)))
		return t->state;
	s.next = python__word(p->runtime + l->interpreters, task);
	PYTHON_LOOP(PYTHON_STATES, python__search, &s, task);
	if (!task) {
		t->state = s.found;
		t->process = p->id;
	}
	return s.found;
}

/* Fills the cursor; false: the stack is not to be had. */
static __always_inline bool python__walk(struct python_thread *t, const struct python_layout *l, u64 state, u32 frames,
					 struct task_struct *task)
{
	struct python_walk w = { .t = t, .l = l, .task = task };
	struct python_cursor *c = &t->cursor;

	c->n = c->cut = c->bad = 0;
	c->hash = c->anchor = 0;
	c->max = frames;
	c->frame = python__first_frame(l, state, task);
	/* frames of interpreters and of what is incomplete come on top */
	PYTHON_LOOP(STACK_FRAMES * 2, python__step, &w, task);
	if (c->frame && !c->cut && !c->bad)
		c->bad = LOSS_TORN;
	if (c->bad)
		loss__count(0, c->bad, bpf_ktime_get_ns());
	return !c->bad && c->n;
}

/*
 * me: the thread whose stack is walked if state is 0. task: whose memory is read, NULL: the current one's, which is
 * then `me`.
 */
static __always_inline u32 python__walk_thread(struct python_thread *t, struct task_struct *me, u64 state, u64 gil,
					       u32 frames, struct task_struct *task)
{
	u32 pid = me->tgid;
	const struct python_process *p = bpf_map_lookup_elem(&python_processes, &pid);
	const struct python_layout *l;
	u64 self = me->thread.fsbase, hash;
	bool stands = !task;
	u32 layout;

	if (!p)
		return 0;
	layout = p->layout;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	if (!l)
		return 0;
	if (!state)
		state = python__own_state(t, p, l, self, gil, task);
	else if (stands)
		stands = python__is_own(l, state, self, 0, NULL);
	if (!state)
		return 0;
	t->cursor.code_type = p->code_type;
	if (!python__walk(t, l, state, frames, task))
		return 0;
	if (!stands) {
		/* it may run meanwhile: what is seen twice was there */
		hash = t->cursor.hash;
		if (!python__walk(t, l, state, frames, task))
			return 0;
		if (t->cursor.hash != hash) {
			loss__count(0, LOSS_TORN, bpf_ktime_get_ns());
			return 0;
		}
	}
	return python__intern(t, p, l, pid, task);
}

/* The current task's room to walk in, to be left with python__leave(). */
static __always_inline struct python_thread *python__enter(struct task_struct *me)
{
	struct python_thread *t;

	t = bpf_task_storage_get(&python_threads, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || t->busy) {
		loss__count(0, t ? LOSS_RECURSION : LOSS_STORAGE, bpf_ktime_get_ns());
		return NULL;
	}
	t->busy = 1;
	return t;
}

static __always_inline void python__leave(struct python_thread *t)
{
	t->busy = 0;
}

/*
 * state 0: the current thread's, the one of the interpreter with this GIL if gil is not 0. A function of its own for
 * the verifier.
 */
__weak __noinline int python__walk_current(u64 state, u64 gil, u32 frames)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct python_thread *t;
	u32 id, tgid = me->tgid;

	if (!bpf_map_lookup_elem(&python_processes, &tgid))
		return 0;
	t = python__enter(me);
	if (!t)
		return 0;
	id = python__walk_thread(t, me, state, gil, frames, NULL);
	python__leave(t);
	return id;
}

#endif
