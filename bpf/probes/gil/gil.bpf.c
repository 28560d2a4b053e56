// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for the GIL, and which thread ended them. docs/gil.md explains this at length; in short:
 *
 * Both ends of a wait run with gil->mutex held, so the members of the GIL that they read are stable: `switch_number`
 * counts holders, and `last_holder` is the thread state of the newest. The last few holders of each GIL are stored by
 * that number (struct gil_periods). A thread that finds the GIL free at the end of its wait takes it before it
 * unlocks the mutex, so it is the holder of the next number. When a program later reads this number together with
 * `last_holder`, it knows that this thread state belongs to that thread. The program on sched_waking adds the time of
 * a drop, and the thread of a dropper that never had to wait.
 */
#include "core/futex.bpf.h"
#include "core/python.bpf.h"

OPTION(gil, stacks, "a stack of every wait and every hold, also of the short ones; 5 us for each");
OPTION(gil, full, "probes also where the GIL is taken and dropped: hold times, exact blame; 2 us for each drop");

#include "gil_holders.bpf.h"

#define SYS_FUTEX 202
#define ETIMEDOUT 110

/* sizes in glibc and musl on x86-64 */
#define COND_SIZE  48
#define MUTEX_SIZE 40

/* The current or last wait of a thread. */
struct gil_open {
	struct gil_wait wait;
	u64 mutex;
	u64 switches; /* switch_number at the start of the wait */
	u64 hold_gil, hold_start; /* with --gil=full: the GIL that the thread holds, and since when; 0: unknown */
	/* with --gil=full: the GIL that the thread dropped on request, and since when it waits for a taker */
	u64 switch_gil, switch_start;
	u64 until_stack; /* ns of short waits that are still to come before one gets a stack: stack__is_due() */
	u32 number;
	u32 slice; /* number of the slice of time (docs/gil.md, "Slices of time") in which the wait began */
	u32 stack; /* of the attempt that the wait belongs to */
	bool open;
	bool legible; /* the GIL's state could be read at the start of the wait */
	bool continues; /* the GIL was held at the end of the last wait: the next wait belongs to the same attempt */
};

struct {
	TASK_STORAGE(struct gil_open);
} gil_waits SEC(".maps");

/*
 * Processes whose runtime could not be probed, so that their GIL is recognized in libc's condition variables. gil.c
 * fills this.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct gil_range);
} gil_ranges SEC(".maps");

/*
 * Finds the last drop before the end of a wait that a signal ended. If the GIL is free, its last holder dropped it.
 * If it is held, the previous holder dropped it, unless a drop by the present holder was recorded during the wait.
 */
static __always_inline void attribute(struct gil_wait *w, struct gil_periods *p, u64 process, const struct gil_state *s,
				      u64 at_call)
{
	bool seen = p->drop_time >= w->span.start;
	u64 last = s->switches - (s->locked ? 1 : 0);

	if (seen && (p->drop_switches == s->switches || p->drop_switches == last)) {
		w->dropper = p->dropper;
		w->drop_time = p->drop_time;
		return;
	}
	/*
	 * no other thread has held the GIL since the wait began, and no drop was recorded: a spurious wake-up of the
	 * condition
	 */
	if (s->locked && s->switches == at_call)
		return;
	w->dropper = holder_of(p, process, last);
}

static __always_inline void wait_begins(u64 cookie, u64 cond, u64 mutex, const struct gil_state *s)
{
	u64 now = bpf_ktime_get_ns();
	struct gil_key key = {};
	u32 slice = slice_now();
	struct gil_periods *p;
	struct gil_open *o;

	o = bpf_task_storage_get(&gil_waits, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o) {
		loss__count(EVENT_FAMILY(ID_gil_wait), LOSS_STORAGE, now);
		return;
	}
	/* a wait of an earlier slice was written at the end of that slice */
	if (o->open && o->slice == slice) {
		/* left by cancellation or longjmp */
		o->wait.span.event.time = now;
		o->wait.span.event.flags |= EVENT_RETURN_NOT_SEEN;
		emit(&o->wait, sizeof(o->wait));
		loss__count(EVENT_FAMILY(ID_gil_wait), LOSS_RETURN, now);
	}
	__builtin_memset(&o->wait, 0, sizeof(o->wait));
	event__init(&o->wait.span.event, ID_gil_wait, cookie, 0);
	o->wait.gil = cond;
	o->wait.number = ++o->number;
	o->mutex = mutex;
	o->legible = s != NULL;
	/* a new attempt has no stack yet; within an attempt the thread's stack does not change */
	if (!o->continues || o->slice != slice)
		o->stack = 0;
	o->wait.stack = o->stack;
	o->slice = slice;
	o->continues = false;
	if (s) {
		key.addr = cond;
		key.process = process_of(bpf_get_current_task_btf());
		o->switches = s->switches;
		p = periods_of(&key);
		if (p) {
			note_holder_for(p, key.process, s, o->wait.span.event.tid);
			o->wait.waiters = waiter_comes(p, slice, now);
		}
	}
	o->open = true;
	o->wait.span.start = bpf_ktime_get_ns();
}

/* Runs at the end of a wait, where the thread holds gil->mutex. */
static __always_inline void inspect_gil(struct gil_wait *w, u32 tid, u64 at_call, u32 slice)
{
	struct gil_key key = { .addr = w->gil, .process = process_of(bpf_get_current_task_btf()) };
	struct gil_periods *p;
	struct gil_period *next;
	struct gil_state s;
	bool is_stacked;

	p = periods_of(&key);
	if (p)
		waiter_goes(p, slice);
	if (!read_state(w->gil, &s))
		return;
	w->locked = s.locked;
	w->last_holder = s.last_holder;
	/*
	 * Reads the stack of a holder that still has the GIL after a whole switch interval. With many waiters, or a
	 * short interval, time-outs are less than GIL_STACK_NS apart: only a time-out with a stack restarts the time
	 * that hold_ns() measures.
	 */
	is_stacked = w->result == GIL_WAIT_TIMEOUT && s.locked &&
		     (!p || option_gil_stacks || hold_ns(p, w->span.event.time) >= GIL_STACK_NS);
	if (is_stacked)
		w->holder_stack = python__stack_of(s.last_holder, STACK_FRAMES_SHORT);
	if (!p)
		return;
	if (is_stacked || !s.locked)
		p->known = w->span.event.time;
	w->holder = note_holder_for(p, key.process, &s, tid);
	if (w->result == GIL_WAIT_SIGNAL)
		attribute(w, p, key.process, &s, at_call);
	/* if a thread takes the GIL again that it held last, Python does not count a switch */
	if (!s.locked && w->holder != tid) {
		next = period(p, s.switches + 1);
		next->switches = s.switches + 1;
		next->state = 0;
		next->tid = tid;
	}
}

/*
 * The waiting thread's stack, which is read here and not at the start of the wait: it is the same, and the length of
 * the wait is known. The timed waits of an attempt after the first one that gets a stack have the same stack; those
 * before it have none.
 */
static __always_inline void take_stack(struct gil_open *o)
{
	struct gil_wait *w = &o->wait;

	if (!o->stack && gets_stack(&o->until_stack, w->span.event.time - w->span.start))
		o->stack = python__stack_waiting(w->gil - sizeof(struct gil_state), STACK_FRAMES);
	w->stack = o->stack;
}

/* Returns false if this is not the end of a recorded wait. */
static __always_inline bool wait_ends(u32 ret)
{
	u64 now = bpf_ktime_get_ns();
	struct gil_open *o;

	o = bpf_task_storage_get(&gil_waits, bpf_get_current_task_btf(), 0, 0);
	if (!o || !o->open || paused())
		return false;
	o->open = false;
	if (o->slice != slice_now())
		return false;
	o->wait.span.event.time = now;
	o->wait.result = ret == ETIMEDOUT ? GIL_WAIT_TIMEOUT : GIL_WAIT_SIGNAL;
	take_stack(o);
	if (o->legible)
		inspect_gil(&o->wait, o->wait.span.event.tid, o->switches, o->slice);
	o->continues = o->wait.locked;
	emit(&o->wait, sizeof(o->wait));
	wake_worker();
	return true;
}

/* At the end of a timed wait, whose result is in the register */
static __always_inline int end_wait(struct pt_regs *ctx)
{
	struct hit_count *h = probe__hit(bpf_get_attach_cookie(ctx));

	if (!wait_ends(ctx->ax) && h)
		h->skipped++;
	return 0;
}

/*
 * The jump on the result of take_gil's timed wait. Programs are attached in the order in which they are defined here,
 * ends before starts: an end without a start is harmless.
 */
SITE(gil_wait_jump, "end of the wait in take_gil")
{
	return end_wait(ctx);
}

/* take_gil's `call pthread_cond_timedwait`: the arguments are &gil->cond, &gil->mutex and the time. */
SITE(gil_wait_call, "pthread_cond_timedwait in take_gil")
{
	u64 cookie = bpf_get_attach_cookie(ctx), cond = ARG1(ctx), mutex = ARG2(ctx);
	struct hit_count *h = probe__hit(cookie);
	struct gil_state s;

	if (paused() || !process__is_selected(bpf_get_current_pid_tgid() >> 32)) {
		if (h)
			h->skipped++;
		return 0;
	}
	wait_begins(cookie, cond, mutex, mutex - cond == COND_SIZE && read_state(cond, &s) ? &s : NULL);
	return 0;
}

SITE(gil_libc_leave, "return of pthread_cond_timedwait in libc")
{
	return end_wait(ctx);
}

/* The fallback. The calls of every process come here, so a wait for anything but a GIL has to be recognized quickly. */
SITE(gil_libc_enter, "pthread_cond_timedwait in libc")
{
	u64 cookie = bpf_get_attach_cookie(ctx), cond = ARG1(ctx), mutex = ARG2(ctx), sp = ctx->sp, caller;
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct hit_count *h = probe__hit(cookie);
	struct gil_range *r;
	struct gil_state s;

	r = mutex - cond == COND_SIZE ? bpf_map_lookup_elem(&gil_ranges, &tgid) : NULL;
	if (!r || paused() || !process__is_selected(tgid))
		goto skip;
	if (bpf_probe_read_user(&caller, sizeof(caller), (const void *)sp))
		goto skip;
	/*
	 * another library may wrap the function: the caller's address is of no use then, but the address of the main
	 * GIL is
	 */
	if (caller - r->text >= r->text_size && cond - r->data >= r->data_size)
		goto skip;
	if (!read_state(cond, &s) || !s.locked)
		goto skip;
	wait_begins(cookie, cond, mutex, &s);
	return 0;
skip:
	if (h)
		h->skipped++;
	return 0;
}

#include "gil_drops.bpf.h"
#include "gil_full.bpf.h"

SEC("tp_btf/sched_process_exit")
int BPF_PROG(gil_thread_exit, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct gil_open *o = bpf_task_storage_get(&gil_waits, me, 0, 0);
	u32 tgid = task->tgid, tid = task->pid;
	struct gil_key key = {};
	struct gil_periods *p;
	struct gil_key *state = bpf_map_lookup_elem(&gil_own_states, &tid);

	if (state) {
		bpf_map_delete_elem(&gil_states, state);
		bpf_map_delete_elem(&gil_own_states, &tid);
	}

	if (!task__live_threads(task))
		bpf_map_delete_elem(&gil_ranges, &tgid);
	if (!o)
		return 0;
	full__thread_ends(o, me);
	if (!o->open || o->slice != slice_now())
		return 0;
	o->open = false;
	key.addr = o->wait.gil;
	key.process = process_of(me);
	p = bpf_map_lookup_elem(&gil_gils, &key);
	if (p && o->legible)
		waiter_goes(p, o->slice);
	o->wait.span.event.time = measured_until();
	o->wait.span.event.flags |= EVENT_OPEN;
	if (o->wait.span.start < o->wait.span.event.time)
		emit(&o->wait, sizeof(o->wait));
	return 0;
}

/* A child is a copy of its parent, so its runtime has the same address. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(gil_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid;
	struct gil_range *r;

	if (from == to)
		return 0;
	r = bpf_map_lookup_elem(&gil_ranges, &from);
	if (r && bpf_map_update_elem(&gil_ranges, &to, r, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_gil_wait), LOSS_MAP_FULL, bpf_ktime_get_ns());
	return 0;
}

/*
 * The holder of a GIL may never have had to wait for it, and then the programs above do not know its thread. But a
 * thread state contains its thread's pthread_self(), which equals the thread's FS base: gil.c writes the thread
 * states that it searches for into gil_sought and runs this iterator.
 */
#define STATE_WORDS 64
#define CHUNK_WORDS 16

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32); /* tgid */
	__type(value, u64); /* thread state */
} gil_sought SEC(".maps");

static __always_inline bool names_thread(struct task_struct *task, u64 state)
{
	u64 self = task->thread.fsbase, words[CHUNK_WORDS];
	u32 i, j;

	if (!self)
		return false;
	for (i = 0; i < STATE_WORDS / CHUNK_WORDS; i++) {
		if (bpf_copy_from_user_task(words, sizeof(words), (void *)(state + i * sizeof(words)), task, 0))
			return false;
		for (j = 0; j < CHUNK_WORDS; j++)
			if (words[j] == self)
				return true;
	}
	return false;
}

SEC("?iter.s/task")
int gil_find_holders(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid;
	u64 *state;

	if (!task)
		return 0;
	tgid = task->tgid;
	state = bpf_map_lookup_elem(&gil_sought, &tgid);
	if (state && names_thread(task, *state))
		learn(process_of(task), *state, task->pid);
	return 0;
}

/* Writes open waits at the end of the recording and at the end of a slice; the next slice ignores them. */
SEC("iter/task")
int gil_open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct gil_wait wait;
	struct gil_open *o;
	u64 now;

	if (!task)
		return 0;
	o = bpf_task_storage_get(&gil_waits, task, 0, 0);
	if (!o)
		return 0;
	now = measured_until();
	full__still_open(o, task, ctx->meta->seq, now);
	if (!o->open || o->slice != slice_now())
		return 0;
	/* mark it closed: until the next slice the number stays the same, and the thread's end would write it again */
	o->open = false;
	/* skip it: it began after the slice's end, before the programs knew of that end */
	if (o->wait.span.start >= now)
		return 0;
	wait = o->wait;
	wait.span.event.time = now;
	wait.span.event.flags |= EVENT_OPEN;
	iter__write(ctx->meta->seq, &wait, sizeof(wait));
	return 0;
}
