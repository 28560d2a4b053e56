/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stack walk for python.bpf.h; docs/python.md explains it. The thread state leads to the frames, each frame to
 * its code object. The walk hashes what identifies them; a map has the id of a stack that was seen before. The frames
 * of a new stack are looked up one by one from the outermost one inwards, and new frames are sent.
 */
#pragma once

#include "core/python_code.bpf.h"
#include "core/python_state.bpf.h"

/* The frame's offset in its bytecode, in bytes. */
static __always_inline s64 python__offset(const struct python_thread *t, const struct python_layout *l, u64 code,
					  struct task_struct *task)
{
	u64 instr = frame_word(t, l->frame_instr), start = code + l->code_start, copy;

	if (l->instr_unit) {
		/* f_lasti is an int in the upper or lower half of the word */
		s32 lasti = instr >> (l->frame_instr & 4 ? 32 : 0);

		return lasti < 0 ? -1 : lasti * (s64)l->instr_unit;
	}
	if (l->code_copies) {
		copy = (u32)(frame_word(t, l->frame_copy) >> (l->frame_copy & 4) * 8);
		/* struct _PyCodeArray: the size, then the addresses */
		start = python__word(python__word(code + l->code_copies, task) + 8 + copy * 8, task);
	}
	return instr - start;
}

/* A frame that has not reached its first traceable instruction does not exist yet for Python either. */
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

/* Did native code call the function of the frame? From 3.12 on python__mark_entry() marks such frames. */
static __always_inline bool python__is_entry(const struct python_thread *t, const struct python_layout *l)
{
	return l->instr_unit ||
	       (l->frame_is_entry && (frame_word(t, l->frame_is_entry) >> (l->frame_is_entry & 7) * 8 & 0xff));
}

/* Marks the last of n frames: the one before a frame that is skipped. */
static __always_inline void python__mark_entry(struct python_thread *t, u32 n)
{
	u32 at = n - 1;

	KEEP_BOUND(at);
	if (at >= STACK_FRAMES || !t->frames[at].code)
		return;
	t->frames[at].code |= PYTHON_ENTRY;
	t->cursor.hash = python__mix(t->cursor.hash, PYTHON_ENTRY);
}

/* Puts one FRAME_CUT in the place of the frames from here on that are left out. */
static __always_inline void python__cut(struct python_thread *t)
{
	struct python_cursor *c = &t->cursor;
	u32 n = c->n;

	c->frame = 0;
	if (n >= STACK_FRAMES)
		return;
	t->frames[n] = (struct python_frame){};
	c->hash = python__mix(c->hash, 0);
	c->n = n + 1;
}

/*
 * Behind the STACK_INNER innermost frames the walk only follows their links and keeps the addresses of the last
 * STACK_OUTER frames, until it knows where the outermost frames begin.
 */
static __always_inline long python__skip(struct python_walk *w, struct task_struct *task)
{
	struct python_thread *t = w->t;
	struct python_cursor *c = &t->cursor;
	struct python_frame *last = t->frames + STACK_FRAMES - STACK_OUTER; /* not in use yet */
	u32 n = c->n_skipped;

	last[n % STACK_OUTER].code = c->frame;
	c->n_skipped = ++n;
	c->frame = c->frame & 7 ? 0 : python__word(c->frame + w->l->frame_previous, task);
	if (c->frame && n < STACK_SKIPPED)
		return 0;
	c->is_outer = 1;
	if (c->frame || n > STACK_OUTER)
		python__cut(t);
	if (n < STACK_SKIPPED)
		c->frame = last[n > STACK_OUTER ? n % STACK_OUTER : 0].code;
	return 0;
}

static __always_inline long python__step(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct python_cursor *c = &t->cursor;
	u32 size = l->frame_size, owner, n = c->n, bad;
	u64 frame = c->frame, code, check;
	s64 offset, place;

	if (!frame)
		return 1;
	if (n == STACK_INNER && !c->is_outer)
		return python__skip(w, task);
	if (n >= c->max || n >= STACK_FRAMES) {
		python__cut(t);
		return 1;
	}
	if (size > sizeof(t->frame) || python__read(t->frame, size, frame, task)) {
		c->loss = LOSS_READ;
		return 1;
	}
	c->frame = frame_word(t, l->frame_previous);
	if ((c->frame && c->frame == c->anchor) || (c->frame & 7)) {
		c->loss = LOSS_TORN;
		return 1;
	}
	owner = l->owner_skipped ? frame_word(t, l->frame_owner) >> (l->frame_owner & 7) * 8 & 0xff : 0;
	if (l->owner_skipped && owner >= l->owner_skipped) {
		python__mark_entry(t, n);
		if (!n || !c->is_searched)
			return 0;
		c->is_searched = 0;
		c->is_foreign = t->search.stack_size && !python__on_stack(&t->search, frame);
		return c->is_foreign;
	}
	/* from 3.14 on the lowest bits are a tag */
	code = frame_word(t, l->frame_code) & ~7ULL;
	bad = python__know(w, code, &check, task);
	if (bad) {
		c->loss = bad;
		return 1;
	}
	offset = python__offset(t, l, code, task);
	if (!n && python__incomplete(l, code, offset, owner, task))
		return 0;
	t->frames[n].code = code | (python__is_entry(t, l) ? PYTHON_ENTRY : 0);
	t->frames[n].check = check;
	t->frames[n].offset = offset;
	place = n ? offset : 0; /* python__intern() adds the innermost one */
	c->hash = python__mix(python__mix(python__mix(c->hash, code), check), place);
	if (!n)
		c->top = offset;
	if (!(n & (n + 1))) /* 0, 1, 3, 7, ..: finds any cycle */
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

static __always_inline u32 python__code_id(struct python_walk *w, const struct python_frame *f,
					   struct task_struct *task)
{
	u64 code = f->code & ~PYTHON_ENTRY;
	struct python_cursor *c = &w->t->cursor;
	struct python_code_key key = {
		.code = code, .check = f->check, .process = c->process, .epoch = *(volatile u32 *)&stack_epoch
	};
	u32 *known = bpf_map_lookup_elem(&python_codes, &key), id;

	if (known)
		return *known;
	id = __sync_fetch_and_add(&stack_last_code, 1) + 1;
	if (task ? python__send_code(w, code, id, task) : python__send_code_here(w->t, w->known, code, id, c->layout))
		return 0;
	if (!c->is_current && python__check(w->t, w->l, task) != f->check) {
		c->loss = LOSS_TORN;
		return 0;
	}
	bpf_map_update_elem(&python_codes, &key, &id, BPF_ANY);
	return id;
}

/* Looks up the next frame, from the outermost one inwards. */
static __always_inline long python__build(struct python_walk *w, struct task_struct *task)
{
	struct python_cursor *c = &w->t->cursor;
	u32 at = c->n_left - 1, code = 0, kind = FRAME_PYTHON;
	struct python_frame *f;
	bool is_cut;

	if (at >= STACK_FRAMES)
		return 1;
	f = &w->t->frames[at];
	c->n_left = at;
	is_cut = !f->code;
	if (is_cut)
		kind = FRAME_CUT;
	else
		code = python__code_id(w, f, task);
	if (f->code & PYTHON_ENTRY)
		kind |= RAW_FRAME_ENTRY;
	c->caller = code || is_cut ? stack__push(c->caller, kind, code, f->offset, c->pid) : 0;
	if (c->caller)
		return 0;
	c->failed = 1;
	return 1;
}

static long python__build_here(u32 i, struct python_walk *w)
{
	return python__build(w, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__build_there(u32 i, struct python_walk *w)
{
	return python__build(w, w->task);
}
#endif

static __always_inline u32 python__found(struct python_thread *t, const struct python_stack_key *key, u32 id)
{
	t->last = *key;
	t->last_id = id;
	return id;
}

/* Returns the id of the stack that was walked. */
static __always_inline u32 python__intern(struct python_walk *w, struct task_struct *task)
{
	struct python_cursor *c = &w->t->cursor;
	struct python_stack_key key = {
		.hash = python__mix(python__mix(c->hash, c->top), c->n),
		.process = c->process,
		.epoch = *(volatile u32 *)&stack_epoch,
	};
	struct python_thread *t = w->t;
	u32 *known, id;

	if (t->last_id && t->last.hash == key.hash && t->last.process == key.process && t->last.epoch == key.epoch)
		return t->last_id;
	known = bpf_map_lookup_elem(&python_stacks, &key);
	if (known)
		return python__found(t, &key, *known);
	c->n_left = c->n;
	c->failed = 0;
	c->caller = 0;
	PYTHON_LOOP(STACK_FRAMES, python__build, w, task);
	if (c->failed)
		return 0;
	id = c->caller;
	bpf_map_update_elem(&python_stacks, &key, &id, BPF_ANY);
	return python__found(t, &key, id);
}

/*
 * A number that changes with the interpreter of the thread state that was read, and with its code objects. A version
 * of CPython without such a counter gets a new number for each walk.
 */
static __always_inline u64 python__epoch(struct python_thread *t, const struct python_layout *l,
					 struct task_struct *task)
{
	u64 interp = state_word(t, l->state_interp), epoch;

	epoch = l->interp_epoch ? python__word(interp + l->interp_epoch, task) : 0;
	/* 3.13 stops counting at the overflow of an int, at 0 */
	if (l->version < 0x030e)
		epoch = (u32)epoch;
	if (!epoch)
		return ++t->walks;
	return python__mix(python__mix(t->cursor.process, python__word(interp + l->interp_id, task)), epoch) |
	       1ULL << 63;
}

/* Fills the cursor from the thread state that was read. */
static __always_inline void python__walk(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct python_cursor *c = &t->cursor;
	u64 cframe;

	c->n = c->n_skipped = c->is_outer = c->loss = 0;
	c->hash = c->anchor = c->top = 0;
	c->epoch = python__epoch(t, l, task);
	c->frame = state_word(t, l->state_frame);
	if (l->by_cframe && c->frame)
		c->frame = python__word(c->frame + l->cframe_frame, task);
	cframe = l->state_cframe ? state_word(t, l->state_cframe) : 0;
	/* frames of compiled code, such as Nuitka's, have no loop: the state's own _PyCFrame leads to them */
	if (cframe && cframe - c->state >= PYTHON_STATE_MAX && c->is_searched && t->search.stack_size && c->frame &&
	    !python__on_stack(&t->search, cframe)) {
		c->is_foreign = 1;
		return;
	}
	/* leave room for interpreter frames and incomplete frames, which are skipped */
	PYTHON_LOOP(STACK_FRAMES * 2 + STACK_SKIPPED, python__step, w, task);
	if (c->frame && !c->loss)
		c->loss = LOSS_TORN;
}

/*
 * Walks a thread once. A thread that may run meanwhile is walked until two successive walks agree. The position in
 * the innermost frame may differ, as it changes with each instruction.
 */
static __always_inline long python__try(struct python_walk *w, struct task_struct *task)
{
	struct python_thread *t = w->t;
	struct python_cursor *c = &t->cursor;
	u64 before = c->same;

	if (!c->is_current && !python__read_state(t, w->l, c->state, task)) {
		c->loss = LOSS_READ;
		return 1;
	}
	python__walk(w, task);
	if (c->is_foreign)
		return 1;
	c->same = c->loss ? 0 : python__mix(c->hash, c->n);
	c->agreed = !c->loss && (c->is_current || c->same == before);
	return c->is_current || c->agreed;
}

static long python__try_here(u32 i, struct python_walk *w)
{
	return python__try(w, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__try_there(u32 i, struct python_walk *w)
{
	return python__try(w, w->task);
}
#endif

/*
 * t and known: buffers of the walk. me: the thread whose stack is walked if state is 0. task: the task whose memory
 * is read; NULL: the current task, which is then `me`.
 */
static __always_inline u32 python__walk_thread(struct python_thread *t, struct python_known *known,
					       struct task_struct *me, u64 state, u64 gil, u32 frames,
					       struct task_struct *task)
{
	u32 pid = me->tgid, layout, id;
	struct python_process *p = bpf_map_lookup_elem(&python_processes, &pid);
	struct python_cursor *c = &t->cursor;
	struct python_walk w = { .t = t, .known = known };

	if (!p)
		return 0;
#ifdef PYTHON_WALK_TASKS
	w.task = task;
#endif
	python__read_stack(&t->search, me);
	t->search.has_foreign = p->has_foreign && t->search.stack_size;
	/* a copy on the stack: the verifier of 6.1 accepts no map key in memory that a global function was passed */
	c->which = python__which(t, p, task);
	layout = python__at(p, c->which)->layout;
	c->layout = layout;
	c->code_type = python__at(p, c->which)->code_type;
	c->process = p->id;
	c->pid = pid;
	c->max = frames;
	w.l = bpf_map_lookup_elem(&python_layouts, &layout);
	if (!w.l)
		return 0;
	c->is_current = !task;
	c->is_searched = !state;
	c->is_foreign = 0;
	if (!state)
		state = python__own_state(&w, p, gil, task);
	else if (!python__read_state(t, w.l, state, task))
		state = 0;
	else if (c->is_current)
		c->is_current = state_word(t, w.l->state_thread_id) == t->search.self;
	if (!state)
		return 0;
	c->state = state;
	c->now = w.l->interp_epoch ? 0 : bpf_ktime_get_ns() >> 20;
	c->same = c->agreed = 0;
	PYTHON_LOOP(PYTHON_TRIES, python__try, &w, task);
	if (c->is_foreign) {
		/* looked up again, as older kernels give all functions together 512 bytes of stack */
		p = bpf_map_lookup_elem(&python_processes, &pid);
		if (p)
			p->has_foreign = 1;
		return 0;
	}
	if (!c->agreed) {
		loss__count(0, c->loss ?: LOSS_TORN, bpf_ktime_get_ns());
		return 0;
	}
	id = c->n ? python__intern(&w, task) : 0;
	if (c->loss)
		loss__count(0, c->loss, bpf_ktime_get_ns());
	return id;
}

/*
 * Walks with buffers that the caller has reserved. A separate function, so that the verifier checks it once for all
 * kinds of memory.
 */
__weak __noinline int python__walk_in(struct python_thread *t, struct python_known *known, u64 state, u64 gil,
				      u32 frames)
{
	return t && known ? python__walk_thread(t, known, bpf_get_current_task_btf(), state, gil, frames, NULL) : 0;
}

/* For a current thread whose own walk was interrupted. */
static __always_inline u32 python__walk_nested(u64 state, u64 gil, u32 frames)
{
	u32 zero = 0, id;
	struct python_nested *room = bpf_map_lookup_elem(&python_nested, &zero);

	if (!room || room->thread.busy) {
		loss__count(0, LOSS_NESTED, bpf_ktime_get_ns());
		return 0;
	}
	room->thread.busy = 1;
	id = python__walk_in(&room->thread, &room->known, state, gil, frames);
	room->thread.busy = 0;
	return id;
}

/* state 0: search for the current thread's state, of the interpreter with this GIL if gil is not 0. */
static __always_inline u32 python__walk_current(u64 state, u64 gil, u32 frames)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct python_thread *t;
	struct python_known *known;
	u32 id, tgid = me->tgid;

	if (!bpf_map_lookup_elem(&python_processes, &tgid)) {
		/*
		 * a caller that knows a thread state knows that the process has a CPython: so the process is missing
		 * here
		 */
		if (state)
			loss__count(0, LOSS_UNKNOWN, bpf_ktime_get_ns());
		return 0;
	}
	t = bpf_task_storage_get(&python_threads, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t && t->busy)
		return python__walk_nested(state, gil, frames);
	known = bpf_task_storage_get(&python_knowns, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || !known) {
		loss__count(0, LOSS_STORAGE, bpf_ktime_get_ns());
		return 0;
	}
	t->busy = 1;
	id = python__walk_in(t, known, state, gil, frames);
	t->busy = 0;
	return id;
}
