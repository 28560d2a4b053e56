/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --gil=full: each time that a thread takes or drops the GIL, and the wait of drop_gil for a switch that was
 * requested. A part of gil.bpf.c, whose thread storage it uses.
 *
 * The three probe sites are call instructions, which the kernel emulates: take_gil signals switch_cond once it has
 * the GIL, drop_gil signals cond once the GIL is free, and then may wait on switch_cond. At the first two the thread
 * holds gil->mutex, so that the values read there are exact. The address of the signalled condition leads to that of
 * the GIL.
 */
#pragma once

/*
 * offset from cond: pthread_cond_t cond, pthread_mutex_t mutex, pthread_cond_t switch_cond, pthread_mutex_t
 * switch_mutex
 */
#define SWITCH_COND (COND_SIZE + MUTEX_SIZE)

static __always_inline struct gil_open *full__thread(u64 cookie, u64 *process)
{
	struct hit_count *h = probe__hit(cookie);
	struct task_struct *me = bpf_get_current_task_btf();
	struct gil_open *o;

	if (paused() || !process__is_selected(me->tgid)) {
		if (h)
			h->skipped++;
		return NULL;
	}
	*process = process_of(me);
	o = bpf_task_storage_get(&gil_waits, me, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o)
		loss__count(EVENT_FAMILY(ID_gil_hold), LOSS_STORAGE, bpf_ktime_get_ns());
	return o;
}

/* Notes that the thread is the holder of the newest period. */
static __always_inline void full__note(struct gil_periods *p, u64 process, const struct gil_state *s, u32 tid)
{
	struct gil_period *now = period(p, s->switches);

	p->full = 1;
	now->switches = s->switches;
	now->state = s->last_holder;
	now->tid = tid;
	learn(process, s->last_holder, tid);
}

/* take_gil's `call pthread_cond_signal`: the argument is &gil->switch_cond. */
SITE_IF(full, gil_take, "the GIL is taken")
{
	u64 cookie = bpf_get_attach_cookie(ctx), cond = ARG1(ctx) - SWITCH_COND;
	struct gil_key key = { .addr = cond };
	struct gil_periods *p;
	struct gil_state s;
	struct gil_open *o;

	o = full__thread(cookie, &key.process);
	if (!o || !read_state(cond, &s) || !s.locked)
		return 0;
	p = periods_of(&key);
	if (p)
		full__note(p, key.process, &s, (u32)bpf_get_current_pid_tgid());
	o->hold_gil = cond;
	o->hold_start = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void full__held(struct gil_hold *e, struct gil_open *o, u64 gil, u64 start)
{
	e->gil = gil;
	e->span.start = start;
	o->hold_start = 0;
	/* the GIL was taken before the probes were attached */
	if (!start) {
		e->span.start = e->span.event.time;
		e->span.event.flags |= EVENT_NO_DURATION;
	}
}

/* drop_gil's `call pthread_cond_signal`: the argument is &gil->cond. */
SITE_IF(full, gil_give, "the GIL is dropped")
{
	u64 cookie = bpf_get_attach_cookie(ctx), cond = ARG1(ctx), now;
	struct gil_key key = { .addr = cond };
	struct gil_hold e = {};
	struct gil_periods *p;
	struct gil_state s;
	struct gil_open *o;

	o = full__thread(cookie, &key.process);
	if (!o || !read_state(cond, &s) || s.locked)
		return 0;
	p = periods_of(&key);
	if (p)
		e.waiters = waiters_of(p, slice_now());
	if (e.waiters)
		e.stack = python__stack_of(s.last_holder, STACK_FRAMES);
	/*
	 * no thread gets the GIL before this one unlocks the mutex, so the time of the stack walk is a part of the
	 * hold
	 */
	now = bpf_ktime_get_ns();
	event__init(&e.span.event, ID_gil_hold, cookie, now);
	full__held(&e, o, cond, o->hold_gil == cond ? o->hold_start : 0);
	if (p) {
		full__note(p, key.process, &s, e.span.event.tid);
		p->drop_time = now;
		p->drop_switches = s.switches;
		p->dropper = e.span.event.tid;
	}
	emit(&e, sizeof(e));
	return 0;
}

static __always_inline void full__switched(struct gil_switch *e, const struct gil_open *o, u16 flags)
{
	e->span.start = o->switch_start;
	e->span.event.flags |= flags;
	e->gil = o->switch_gil;
}

/* The jump on the result of drop_gil's wait. */
SITE_IF(full, gil_switch_jump, "end of the wait in drop_gil")
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct gil_switch e = {};
	struct gil_open *o;

	probe__hit(cookie);
	o = bpf_task_storage_get(&gil_waits, bpf_get_current_task_btf(), 0, 0);
	if (!o || !o->switch_start || paused())
		return 0;
	event__init(&e.span.event, ID_gil_switch, cookie, bpf_ktime_get_ns());
	full__switched(&e, o, 0);
	o->switch_start = 0;
	emit(&e, sizeof(e));
	return 0;
}

/* drop_gil's `call pthread_cond_wait`: the arguments are &gil->switch_cond and &gil->switch_mutex. */
SITE_IF(full, gil_switch_call, "pthread_cond_wait in drop_gil")
{
	u64 cookie = bpf_get_attach_cookie(ctx), cond = ARG1(ctx), mutex = ARG2(ctx), process;
	struct gil_open *o = full__thread(cookie, &process);
	struct gil_state s;

	if (!o || mutex - cond != COND_SIZE || !read_state(cond - SWITCH_COND, &s))
		return 0;
	o->switch_gil = cond - SWITCH_COND;
	o->switch_start = bpf_ktime_get_ns();
	return 0;
}

/* A thread that ends with the GIL is the last of its process, or was killed: the hold ends with it. */
static __always_inline void full__thread_ends(struct gil_open *o, struct task_struct *me)
{
	u64 now = measured_until();
	struct gil_switch w = {};
	struct gil_hold e = {};

	if (!option_gil_full)
		return;
	if (o->hold_start && o->hold_start < now) {
		event__init(&e.span.event, ID_gil_hold, 0, now);
		full__held(&e, o, o->hold_gil, o->hold_start);
		e.span.event.flags |= EVENT_OPEN;
		emit(&e, sizeof(e));
	}
	if (o->switch_start && o->switch_start < now) {
		event__init(&w.span.event, ID_gil_switch, 0, now);
		full__switched(&w, o, EVENT_OPEN);
		emit(&w, sizeof(w));
	}
	o->switch_start = 0;
}

/* Called by the iterator: writes holds and waits that are open when tracing stops. */
static __always_inline void full__still_open(struct gil_open *o, struct task_struct *task, struct seq_file *seq,
					     u64 now)
{
	struct gil_switch w = {};
	struct gil_hold e = {};

	if (!option_gil_full)
		return;
	e.span.event.time = w.span.event.time = now;
	e.span.event.pid = w.span.event.pid = task->tgid;
	e.span.event.tid = w.span.event.tid = task->pid;
	e.span.event.flags = w.span.event.flags = EVENT_OPEN;
	e.span.event.id = ID_gil_hold;
	w.span.event.id = ID_gil_switch;
	/* what began after `now` is outside of the recording, and is dropped */
	if (o->hold_start && o->hold_start < now) {
		full__held(&e, o, o->hold_gil, o->hold_start);
		iter__write(seq, &e, sizeof(e));
	}
	if (o->switch_start && o->switch_start < now) {
		full__switched(&w, o, 0);
		iter__write(seq, &w, sizeof(w));
	}
	o->hold_start = o->switch_start = 0;
}
