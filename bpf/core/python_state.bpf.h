/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding a thread's PyThreadState. docs/python.md */
#ifndef SONDE_PYTHON_STATE_BPF_H
#define SONDE_PYTHON_STATE_BPF_H

#include "core/python_memory.bpf.h"

static __always_inline u64 python__first_frame(const struct python_layout *l, u64 state, struct task_struct *task)
{
	u64 at = python__word(state + l->state_frame, task);

	if (l->by_cframe)
		at = at ? python__word(at + l->cframe_frame, task) : 0;
	return at;
}

/* In PyThreadState._status, from 3.12 on: it is its thread's current one. */
static __always_inline bool python__active(const struct python_layout *l, u64 state, struct task_struct *task)
{
	return l->state_status && python__word(state + l->state_status, task) & 1 << 4;
}

/*
 * A thread has a state in each interpreter that it has entered. The active one is right; where none is, as in
 * a thread that waits, the first that runs something: new interpreters come first in their list.
 */
static __always_inline long python__search(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_search *s = &w->t->search;
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

static long python__search_here(u32 i, struct python_walk *w)
{
	return python__search(w, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__search_there(u32 i, struct python_walk *w)
{
	return python__search(w, w->task);
}
#endif

/*
 * Reads a thread state. Is it one, in its interpreter's list? Its memory is not cleared when it is freed, but its
 * neighbours' links are mended.
 */
static __always_inline bool python__read_state(struct python_thread *t, const struct python_layout *l, u64 state,
					       struct task_struct *task)
{
	u64 prev;

	if (!state || python__read(t->words, PYTHON_STATE_READ, state, task))
		return false;
	prev = state_word(t, l->state_next - 8);
	return python__word(prev ? prev + l->state_next : state_word(t, l->state_interp) + l->interp_threads, task) ==
	       state;
}

/* Of the state that was read: this thread's, of the interpreter with this GIL (0: any)? */
static __always_inline bool python__is_own(const struct python_thread *t, const struct python_layout *l, u64 self,
					   u64 gil, struct task_struct *task)
{
	if (state_word(t, l->state_thread_id) != self)
		return false;
	return !gil || !l->interp_gil || python__word(state_word(t, l->state_interp) + l->interp_gil, task) == gil;
}

/* Is there one interpreter alone, so that a thread has one state? */
static __always_inline bool python__one_interpreter(const struct python_layout *l, u64 runtime,
						    struct task_struct *task)
{
	u64 interp = python__word(runtime + l->interpreters, task);

	return interp && !python__word(interp + l->interp_next, task);
}

/* The state of the thread with this FS base, which is read; the current task's is remembered. */
static __always_inline u64 python__own_state(struct python_walk *w, const struct python_process *p, u64 self, u64 gil,
					     struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct python_search *s = &t->search;

	if (!task && t->process == p->id && python__read_state(t, l, t->state, NULL) &&
	    python__is_own(t, l, self, gil, NULL) &&
	    ((l->state_status && state_word(t, l->state_status) & 1 << 4) ||
	     python__one_interpreter(l, p->runtime, NULL)))
		return t->state;
	s->interp = s->state = s->found = 0;
	s->self = self;
	s->gil = gil;
	s->next = python__word(p->runtime + l->interpreters, task);
	PYTHON_LOOP(PYTHON_STATES, python__search, w, task);
	if (!task) {
		t->state = s->found;
		t->process = p->id;
	}
	return python__read_state(t, l, s->found, task) ? s->found : 0;
}

#endif
