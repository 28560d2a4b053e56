/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds a thread's PyThreadState (docs/python.md). */
#pragma once

#include "core/python_memory.bpf.h"

static __always_inline u64 python__first_frame(const struct python_layout *l, u64 state, struct task_struct *task)
{
	u64 at = python__word(state + l->state_frame, task);

	if (l->by_cframe)
		at = at ? python__word(at + l->cframe_frame, task) : 0;
	return at;
}

/* Is the thread state its thread's current one (PyThreadState._status, from 3.12 on)? */
static __always_inline bool python__active(const struct python_layout *l, u64 state, struct task_struct *task)
{
	return l->state_status && python__word(state + l->state_status, task) & 1 << 4;
}

/*
 * A thread has a thread state in each interpreter that it has entered. The active one is the right one. If none is
 * active, as in a thread that waits, take the first one with a frame: new interpreters come first in the list.
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
 * Reads a thread state. Is it valid, that is, in its interpreter's list? Python does not clear the memory of a freed
 * thread state, but unlinks it from its neighbours.
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

/* Does the thread state that was read belong to this thread, and to the interpreter with this GIL (0: any)? */
static __always_inline bool python__is_own(const struct python_thread *t, const struct python_layout *l, u64 self,
					   u64 gil, struct task_struct *task)
{
	if (state_word(t, l->state_thread_id) != self)
		return false;
	return !gil || !l->interp_gil || python__word(state_word(t, l->state_interp) + l->interp_gil, task) == gil;
}

/* Does the process have exactly one interpreter, so that a thread has exactly one state? */
static __always_inline bool python__one_interpreter(const struct python_layout *l, u64 runtime,
						    struct task_struct *task)
{
	u64 interp = python__word(runtime + l->interpreters, task);

	return interp && !python__word(interp + l->interp_next, task);
}

/*
 * The thread state that was last found for the task, with its runtime and the layout of its Python. 0: none was found
 * in this process. It may belong to another thread by now.
 */
static __always_inline u64 python__last_state(struct task_struct *task, u64 *runtime, const struct python_layout **l)
{
	struct python_thread *t = bpf_task_storage_get(&python_threads, task, 0, 0);
	u32 tgid = task->tgid, layout;
	const struct python_process *p = bpf_map_lookup_elem(&python_processes, &tgid);

	if (!t || !p || t->process != p->id || !t->state)
		return 0;
	layout = p->layout;
	*runtime = p->runtime;
	*l = bpf_map_lookup_elem(&python_layouts, &layout);
	return *l ? t->state : 0;
}

/* The current task's thread state if it was found before and is still its own; 0: it would have to be searched for. */
static __always_inline __attribute__((unused)) u64 python__known_state(struct task_struct *me)
{
	const struct python_layout *l = NULL;
	u64 runtime = 0, state = python__last_state(me, &runtime, &l);

	if (!state || !l || python__word(state + l->state_thread_id, NULL) != me->thread.fsbase)
		return 0;
	return python__active(l, state, NULL) || python__one_interpreter(l, runtime, NULL) ? state : 0;
}

/*
 * Where the current task's Python code is: its innermost frame, and the instruction in it. false: the task's thread
 * state is not known, as its stack has not been walked yet.
 */
static __always_inline __attribute__((unused)) bool python__position(struct task_struct *me, u64 *frame, u64 *instr)
{
	struct python_thread *t = bpf_task_storage_get(&python_threads, me, 0, 0);
	u32 tgid = me->tgid, layout;
	const struct python_process *p = bpf_map_lookup_elem(&python_processes, &tgid);
	const struct python_layout *l;

	if (!t || !p || t->process != p->id || !t->state)
		return false;
	layout = p->layout;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	*frame = l ? python__first_frame(l, t->state, NULL) : 0;
	if (!*frame || bpf_probe_read_user(instr, sizeof(*instr), (const void *)(*frame + l->frame_instr)))
		return false;
	/* f_lasti is an int */
	if (l->instr_unit)
		*instr = (u32)*instr;
	return true;
}

/* The layout of the current process's CPython; NULL: it is not known, or the process runs none. */
static __always_inline __attribute__((unused)) const struct python_layout *python__layout_here(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, layout;
	const struct python_process *p = bpf_map_lookup_elem(&python_processes, &tgid);

	if (!p)
		return NULL;
	layout = p->layout;
	return bpf_map_lookup_elem(&python_layouts, &layout);
}

/* Finds and reads the thread state of the thread with this FS base. The current task's state is cached. */
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
