/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The present and past holders of each GIL, as gil.bpf.c's programs observed them, in maps. Included once. */
#pragma once

#include "core/sonde.bpf.h"
#include "core/stack_budget.bpf.h"
#include "gil.h"

#define PERIODS 8

/* The head of struct _gil_runtime_state up to the condition; the same from 3.7 to 3.15. */
struct gil_state {
	u64 interval; /* us */
	u64 last_holder; /* PyThreadState * */
	u32 locked;
	u32 pad;
	u64 switches; /* switch_number */
};

/*
 * An address in a process. Python programs start each other by exec, and without ASLR the new program has its GIL and
 * thread states at the same addresses. So a process is identified by its tgid and its address space.
 */
struct gil_key {
	u64 addr; /* address of a condition, or of a thread state */
	u64 process;
};

struct gil_period {
	u64 switches;
	u64 state;
	u32 tid;
	u32 pad;
};

struct gil_periods {
	struct gil_period list[PERIODS]; /* indexed by switches modulo PERIODS */
	/* the last recorded drop */
	u64 drop_time;
	u64 drop_switches;
	u32 dropper;
	u32 waiter;
	u32 number;
	/* threads that wait now; reset in each slice, because ends of waits may be missed between slices */
	u32 waiters;
	u32 slice;
	u32 full; /* its drops are probed, so wake-ups are not used to find them */
	u64 known; /* when its holder was known last: a drop, a take, or a time-out with a stack; or its first waiter came */
	u64 until_stack; /* ns of short holds that are still to come before one gets a stack: stack__is_due() */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct gil_key);
	__type(value, struct gil_periods);
} gil_gils SEC(".maps");

/*
 * Thread state to tid, and tid to thread state, so that both entries can be deleted when a thread ends. LRU, because
 * a wait may still name a thread that has just ended.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct gil_key);
} gil_own_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct gil_key);
	__type(value, u32);
} gil_states SEC(".maps");

/* Shared by gil.c and the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct gil_control);
} gil_controls SEC(".maps");

static __always_inline struct gil_control *control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&gil_controls, &zero);
}

static __always_inline u32 slice_now(void)
{
	struct gil_control *c = control();

	return c ? c->slice : 0;
}

static __always_inline bool paused(void)
{
	struct gil_control *c = control();

	return c && c->paused;
}

/* The moment at which what is open ends: now, or when the pause began. */
static __always_inline u64 measured_until(void)
{
	struct gil_control *c = control();

	return c && c->paused ? c->paused : bpf_ktime_get_ns();
}

/* Wakes the worker after the first wait in a while, so that it attaches sched_waking now and not at its next tick. */
static __always_inline void wake_worker(void)
{
	struct gil_control *c = control();

	if (!c || c->watched)
		return;
	c->watched = 1;
	ring__wake();
}

static __always_inline u64 process_of(struct task_struct *task)
{
	u64 mm = 0;

	/* as a number: the verifier refuses arithmetic on the pointer */
	bpf_probe_read_kernel(&mm, sizeof(mm), &task->mm);
	return (u32)task->tgid | mm >> 6 << 32;
}

/* Reads the members before a condition that may be a GIL's. Returns whether it is one. */
static __always_inline bool read_state(u64 cond, struct gil_state *s)
{
	if (bpf_probe_read_user(s, sizeof(*s), (const void *)(cond - sizeof(*s))))
		return false;
	return s->locked <= 1 && s->interval && s->interval < (1ULL << 40) && !(s->last_holder & 7);
}

/* Does a wait or a hold of this length get a stack? until_stack: see GIL_STACK_NS. */
static __always_inline bool gets_stack(u64 *until_stack, u64 ns)
{
	return ns >= GIL_STACK_NS || option_gil_stacks || stack__is_due(until_stack, ns, GIL_STACK_NS);
}

/* Returns the ns for which threads have waited for the present holder. */
static __always_inline u64 hold_ns(const struct gil_periods *p, u64 now)
{
	return now > p->known ? now - p->known : 0;
}

static __always_inline struct gil_periods *periods_of(struct gil_key *key)
{
	static const struct gil_periods none;
	struct gil_periods *p = bpf_map_lookup_elem(&gil_gils, key);

	if (p)
		return p;
	bpf_map_update_elem(&gil_gils, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&gil_gils, key);
}

/*
 * All of these functions run with gil->mutex held, except for a thread that ends during a wait. Returns the number of
 * threads that wait now.
 */
static __always_inline u32 waiter_comes(struct gil_periods *p, u32 slice, u64 now)
{
	if (p->slice != slice) {
		p->slice = slice;
		p->waiters = 0;
	}
	if (!p->waiters)
		p->known = now;
	return ++p->waiters;
}

static __always_inline void waiter_goes(struct gil_periods *p, u32 slice)
{
	if (p->slice == slice && p->waiters)
		p->waiters--;
}

static __always_inline u32 waiters_of(const struct gil_periods *p, u32 slice)
{
	return p->slice == slice ? p->waiters : 0;
}

static __always_inline struct gil_period *period(struct gil_periods *p, u64 switches)
{
	return &p->list[switches & (PERIODS - 1)];
}

static __always_inline u32 tid_of(u64 process, u64 state)
{
	struct gil_key key = { .addr = state, .process = process };
	u32 *tid = state ? bpf_map_lookup_elem(&gil_states, &key) : NULL;

	return tid ? *tid : 0;
}

static __always_inline void learn(u64 process, u64 state, u32 tid)
{
	struct gil_key key = { .addr = state, .process = process }, *old;
	u32 *known = bpf_map_lookup_elem(&gil_states, &key);

	if (known && *known == tid)
		return;
	/* a thread that calls into Python from C may have a new thread state each time */
	old = bpf_map_lookup_elem(&gil_own_states, &tid);
	if (old)
		bpf_map_delete_elem(&gil_states, old);
	if (bpf_map_update_elem(&gil_own_states, &tid, &key, BPF_ANY) ||
	    bpf_map_update_elem(&gil_states, &key, &tid, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_gil_wait), LOSS_MAP_FULL, bpf_ktime_get_ns());
}

/* Notes the present or last holder of the GIL; returns its thread if that is known. */
static __always_inline u32 note_holder(struct gil_periods *p, u64 process, const struct gil_state *s)
{
	struct gil_period *now = period(p, s->switches);

	if (now->switches != s->switches) {
		now->switches = s->switches;
		now->tid = 0;
		now->state = 0;
	}
	if (now->tid && !now->state)
		learn(process, s->last_holder, now->tid);
	now->state = s->last_holder;
	if (!now->tid)
		now->tid = tid_of(process, s->last_holder);
	return now->tid;
}

/*
 * The same for a thread that waits for this GIL and therefore is not its holder. If it is recorded as the holder, it
 * was expected to take the GIL, which it had found free, but that did not count as a switch because it had been the
 * last holder already. Another thread took the GIL next.
 */
static __always_inline u32 note_holder_for(struct gil_periods *p, u64 process, const struct gil_state *s, u32 waiter)
{
	struct gil_key state = { .addr = s->last_holder, .process = process };
	u32 tid = note_holder(p, process, s);

	if (!s->locked || tid != waiter)
		return tid;
	period(p, s->switches)->tid = 0;
	bpf_map_delete_elem(&gil_states, &state);
	bpf_map_delete_elem(&gil_own_states, &waiter);
	return 0;
}

static __always_inline u32 holder_of(struct gil_periods *p, u64 process, u64 switches)
{
	struct gil_period *then = period(p, switches);

	if (then->switches != switches)
		return 0;
	return then->tid ?: tid_of(process, then->state);
}
