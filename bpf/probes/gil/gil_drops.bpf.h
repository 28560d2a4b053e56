/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Drops of the GIL that wake a waiter, seen by sched_waking. A part of gil.bpf.c, whose thread storage it uses. */
#pragma once

/* The futex on which the current thread is waking others; 0 if it is not in such a call. */
static __always_inline u64 futex_being_woken(struct task_struct *me)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);
	u32 op;

	/* a timer that expires wakes threads, too: `me` is then an unrelated task that the timer interrupted */
	if (regs->orig_ax != SYS_FUTEX)
		return 0;
	op = regs->si & FUTEX_COMMAND;
	return op == FUTEX_WAKE || op == FUTEX_WAKE_OP ? regs->di : 0;
}

/*
 * Which holder's period did the current thread end by the drop that it is in? A drop signals while it holds the
 * mutex: then the GIL is free and this thread was its last holder. After the unlock another thread may hold the GIL
 * already, and the unlock may be that of a thread that has just taken the GIL and holds it now. False: this is no
 * drop, or it is not known.
 */
static __always_inline bool dropped_period(struct gil_periods *p, u64 process, u32 tid, const struct gil_state *s,
					   bool by_mutex, u64 *switches, u64 *state)
{
	u32 now, before;

	*state = s->last_holder;
	if (!by_mutex) {
		learn(process, s->last_holder, tid);
		note_holder(p, process, s);
		*switches = s->switches;
		return !s->locked;
	}
	now = tid_of(process, s->last_holder);
	before = holder_of(p, process, s->switches - 1);
	if (!s->locked && (now == tid || !now)) {
		*switches = s->switches;
		return true;
	}
	*switches = s->switches - 1;
	*state = period(p, *switches)->state;
	return now != tid && before == tid;
}

static __always_inline void drop_seen(struct gil_open *o, struct task_struct *me, u32 waiter, bool by_mutex)
{
	struct gil_key key = { .addr = o->wait.gil, .process = process_of(me) };
	struct gil_drop e = {};
	u64 now = bpf_ktime_get_ns();
	struct gil_periods *p;
	struct gil_state s;
	u32 tid = me->pid;
	u64 switches, state;

	p = periods_of(&key);
	if (!p || p->full || !read_state(key.addr, &s) ||
	    !dropped_period(p, key.process, tid, &s, by_mutex, &switches, &state))
		return;
	/* the signal and the unlock after it woke the same waiter: they are one drop */
	if (by_mutex && p->dropper == tid && p->waiter == waiter && p->number == o->number &&
	    p->drop_switches == switches)
		return;
	p->drop_time = now;
	p->drop_switches = switches;
	p->dropper = tid;
	p->waiter = waiter;
	p->number = o->number;
	event__init(&e.event, ID_gil_drop, 0, now);
	e.gil = key.addr;
	e.waiter = waiter;
	e.number = o->number;
	e.waiters = waiters_of(p, o->slice);
	if (gets_stack(&p->until_stack, hold_ns(p, now))) {
		e.stack = python__stack_of(state, STACK_FRAMES_SHORT);
		e.is_short = hold_ns(p, now) < GIL_STACK_NS;
	}
	p->known = now;
	emit(&e, sizeof(e));
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(gil_waking, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct gil_open *o, *mine;
	u64 futex;

	if (me->tgid != task->tgid)
		return 0;
	futex = futex_being_woken(me);
	if (!futex || paused())
		return 0;
	o = bpf_task_storage_get(&gil_waits, task, 0, 0);
	if (!o || !o->open || !o->legible || o->slice != slice_now())
		return 0;
	if (futex - o->wait.gil >= COND_SIZE && futex - o->mutex >= MUTEX_SIZE)
		return 0;
	/* a waiter that wakes another one passes on a signal, or releases the mutex to wait */
	mine = bpf_task_storage_get(&gil_waits, me, 0, 0);
	if (mine && mine->open)
		return 0;
	drop_seen(o, me, task->pid, futex - o->mutex < MUTEX_SIZE);
	return 0;
}
