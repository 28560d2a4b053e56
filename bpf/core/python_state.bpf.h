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
 * Which thread runs a thread state? The state's thread_id is that of the thread that it was made for, but another one
 * may use it: uWSGI's threads do so for each application but the first. While Python code runs, something of it lies
 * on the C stack: the _PyCFrame of the interpreter's innermost loop (3.10 to 3.12), or the frame that the loop itself
 * adds (from 3.13 on). Before 3.10 only thread_id can be asked.
 */

/* The searched thread's stack, from its stack pointer to struct pthread, or to the main thread's arguments. */
static __always_inline void python__read_stack(struct python_search *s, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 end;

	s->self = task->thread.fsbase;
	end = task->pid == task->tgid ? BPF_CORE_READ(task, mm, start_stack) : s->self;
	s->stack = BPF_CORE_READ(regs, sp);
	s->stack_size = end - s->stack;
	/* a signal's or a coroutine's own stack */
	if (s->stack_size > PYTHON_STACK_MAX)
		s->stack_size = 0;
}

static __always_inline bool python__on_stack(const struct python_search *s, u64 address)
{
	return address - s->stack < s->stack_size;
}

/* The address of the GIL of an interpreter; 0: it is not known. */
static __always_inline u64 python__gil_of(u64 interp, u64 runtime, const struct python_layout *l,
					  struct task_struct *task)
{
	if (l->interp_gil)
		return python__word(interp + l->interp_gil, task);
	return l->runtime_gil ? runtime + l->runtime_gil : 0;
}

/* The thread state that holds the interpreter's GIL; 0: none. */
static __always_inline u64 python__holder(struct python_walk *w, u64 runtime, struct task_struct *task)
{
	u64 gil = python__gil_of(w->t->search.interp, runtime, w->l, task), head[3]; /* interval, last_holder, locked */

	return !gil || python__read(head, sizeof(head), gil, task) || (u32)head[2] != 1 ? 0 : head[1];
}

/* Continues with the next interpreter. Its GIL's holder is the candidate, if that is to be asked. */
static __always_inline long python__next_interpreter(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_search *s = &w->t->search;

	s->interp = s->next;
	if (!s->interp)
		return 1;
	s->state = python__word(s->interp + l->interp_threads, task);
	s->next = python__word(s->interp + l->interp_next, task);
	s->candidate = s->asks_holder ? python__holder(w, s->runtime, task) : 0;
	s->frame = s->candidate ? python__first_frame(l, s->candidate, task) : 0;
	s->is_holder = s->candidate != 0;
	return 0;
}

/*
 * Is what the candidate has on the C stack on the searched thread's one? -1: one of its frames was passed over, ask
 * again. (A loop of its own would need more stack than Linux before 6.13 gives to all functions of a program.)
 */
static __always_inline int python__runs_here(struct python_walk *w, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_search *s = &w->t->search;
	u8 owner;

	if (l->state_cframe)
		return s->frame && python__on_stack(s, python__word(s->candidate + l->state_cframe, task));
	if (!s->frame || !l->owner_skipped || python__read(&owner, sizeof(owner), s->frame + l->frame_owner, task))
		return 0;
	if (owner >= l->owner_skipped)
		return python__on_stack(s, s->frame);
	s->frame = python__word(s->frame + l->frame_previous, task);
	return -1;
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
	int here;

	if (!s->state && !s->candidate)
		return python__next_interpreter(w, task);
	if (!s->candidate) {
		s->candidate = s->state;
		s->frame = s->has_foreign || python__word(s->state + l->state_thread_id, task) == s->self ?
				   python__first_frame(l, s->state, task) :
				   0;
	}
	here = s->is_holder || s->has_foreign ? python__runs_here(w, task) : s->frame != 0;
	if (here < 0)
		return 0;
	if (here &&
	    (s->is_holder || !s->gil || !l->interp_gil || python__word(s->interp + l->interp_gil, task) == s->gil)) {
		active = s->is_holder || python__active(l, s->candidate, task);
		if (active || !s->found)
			s->found = s->candidate;
		if (active || !s->next)
			return 1;
	}
	if (!s->is_holder)
		s->state = python__word(s->state + l->state_next, task);
	s->candidate = s->is_holder = 0;
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

/* Is the thread state that was read one of the interpreter with this GIL (0: any)? */
static __always_inline bool python__has_gil(const struct python_thread *t, const struct python_layout *l, u64 gil,
					    struct task_struct *task)
{
	return !gil || !l->interp_gil || python__word(state_word(t, l->state_interp) + l->interp_gil, task) == gil;
}

/* Does the process have exactly one interpreter, so that a thread has exactly one state? */
static __always_inline bool python__one_interpreter(const struct python_layout *l, u64 runtime,
						    struct task_struct *task)
{
	u64 interp = python__word(runtime + l->interpreters, task);

	return interp && !python__word(interp + l->interp_next, task);
}

static __always_inline const struct python_at *python__at(const struct python_process *p, u32 which)
{
	return &p->at[which & (PYTHON_RUNTIMES - 1)];
}

/*
 * Which CPython of the process to ask for a thread: the one that knew it last. One that was never initialised is
 * passed over.
 */
static __always_inline u32 python__which(const struct python_thread *t, const struct python_process *p,
					 struct task_struct *task)
{
	u32 which = !task && t->process == p->id ? t->which : 0, layout = python__at(p, which)->layout;
	const struct python_layout *l;

	if (p->n < 2)
		return 0;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	return l && python__word(python__at(p, which)->runtime + l->interpreters, task) ? which : !which;
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
	layout = python__at(p, t->which)->layout;
	*runtime = python__at(p, t->which)->runtime;
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
	layout = python__at(p, t->which)->layout;
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
	layout = p->at[0].layout;
	return bpf_map_lookup_elem(&python_layouts, &layout);
}

/*
 * Finds and reads the thread state of the thread whose stack was read. The current task's state is cached. A thread
 * without a state of its own may run another one's: the first searches for it ask the GIL's holder, and then one in 64,
 * as most such threads run no Python code.
 */
static __always_inline u64 python__own_state(struct python_walk *w, struct python_process *p, u64 gil,
					     struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct python_search *s = &t->search;
	u32 which = t->cursor.which;

	s->runtime = python__at(p, which)->runtime;
	if (!task && !s->has_foreign && t->process == p->id && t->which == which &&
	    python__read_state(t, l, t->state, NULL) && state_word(t, l->state_thread_id) == s->self &&
	    python__has_gil(t, l, gil, NULL) &&
	    ((l->state_status && state_word(t, l->state_status) & 1 << 4) ||
	     python__one_interpreter(l, s->runtime, NULL)))
		return t->state;
	s->interp = s->state = s->found = s->candidate = 0;
	s->is_holder = 0;
	s->gil = gil;
	s->next = python__word(s->runtime + l->interpreters, task);
	s->asks_holder = s->stack_size && (t->misses < 4 || !(t->misses & 63));
	PYTHON_LOOP(PYTHON_STATES, python__search, w, task);
	if (!s->found)
		t->misses++;
	else if (python__word(s->found + l->state_thread_id, task) != s->self)
		p->has_foreign = 1;
	if (!task) {
		t->state = s->found;
		t->process = p->id;
		t->which = s->found || p->n < 2 ? which : !which;
	}
	return python__read_state(t, l, s->found, task) ? s->found : 0;
}
