// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The code that ends another thread's wait for a futex of WAKE_MIN or longer: it releases the lock, signals the
 * condition, or ends.
 * sched_waking runs in the waker's context, so its stack is read right there. That delays the waiter, which has
 * waited for at least WAKE_MIN (docs/sampling.md has the times).
 *
 * Waits for the GIL are left out, because family gil records them.
 */
#include "core/futex.bpf.h"
#include "core/native.bpf.h"
#include "core/python.bpf.h"
#include "core/python_gil.bpf.h"
#include "core/slices.bpf.h"
#include "sample_lock.bpf.h"
#include "sample_thread.bpf.h"

#define WAKE_MIN 100000 /* ns that the woken thread was off the CPU */

/*
 * Limit of stacks of one waker: WAKE_STACKS at once, and one more every WAKE_REFILL ns. Each costs the worker about
 * 10 us, and is read with interrupts off. Wakes after a wait of WAKE_LONG or more have a separate limit, with one more
 * every WAKE_REFILL_LONG ns.
 */
#define WAKE_STACKS	 64
#define WAKE_REFILL	 50000000
#define WAKE_REFILL_LONG 5000000
#define WAKE_LONG	 10000000

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct raw_wake);
} sample_wakes SEC(".maps");

static __always_inline bool is_wake(u32 op)
{
	op &= FUTEX_COMMAND;
	return op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET || op == FUTEX_WAKE_OP || op == FUTEX_UNLOCK_PI ||
	       op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE || op == FUTEX_CMP_REQUEUE_PI;
}

/* The futex that the thread waits on, 0: none. */
static __always_inline u64 futex_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (task__in_32bit_call(task) || regs->orig_ax != SYS_futex || !futex__waits(regs->si & FUTEX_COMMAND))
		return 0;
	return regs->di;
}

/* Can the current thread end a wait for a futex? A timer may have interrupted an unrelated thread. */
static __always_inline bool ends_waits(struct task_struct *me)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);

	if (me->flags & PF_EXITING)
		return true;
	return !task__in_32bit_call(me) && regs->orig_ax == SYS_futex && is_wake(regs->si);
}

/* Returns how the current thread ends waits for this futex (SAMPLE_WAKE_..), 0 if it does not; only if ends_waits(). */
static __always_inline u8 how_of(struct task_struct *me, u64 futex)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);

	if (me->flags & PF_EXITING)
		return SAMPLE_WAKE_EXIT;
	return regs->di == futex || regs->r8 == futex ? SAMPLE_WAKE_FUTEX : 0;
}

/*
 * Is the futex part of the GIL of the woken thread? If that thread's state is not known, the GIL is that of the current
 * thread, which is of the same process.
 */
static __always_inline bool waits_for_gil(struct task_struct *woken, struct task_struct *me, u64 futex)
{
	u64 gil = python__known_gil(woken) ?: python__known_gil(me);

	return gil && futex - gil < GIL_SIZE;
}

/* May a stack of the waker `t` be read, for a wake of a thread that waited for so many ns? */
static __always_inline bool takes_stack(struct sample_thread *t, u64 waited, u64 now)
{
	struct wake_limit *l = waited < WAKE_LONG ? &t->short_wakes : &t->long_wakes;
	u64 more = (now - l->refilled) / (waited < WAKE_LONG ? WAKE_REFILL : WAKE_REFILL_LONG);

	if (more) {
		l->left = l->left + more < WAKE_STACKS ? l->left + more : WAKE_STACKS;
		l->refilled = now;
	}
	if (!l->left)
		return false;
	l->left--;
	return true;
}

/*
 * The current thread's Python stack; 0 also where its thread state is not known yet: the search for it, in memory that
 * the process may have changed at will, would take too long with interrupts off.
 */
static __always_inline u32 python_of(struct task_struct *me)
{
	return python__stack_of(python__known_state(me), STACK_FRAMES_SHORT);
}

/*
 * Adds the native stack to the record of the current CPU and sends it. The Python stack was taken by the caller: this
 * function's frame and the walk's together need more BPF stack than 6.1 allows.
 */
__weak __noinline int sample_send_wake(struct sample_thread *t)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct raw_wake *raw;
	u32 zero = 0;

	raw = bpf_map_lookup_elem(&sample_wakes, &zero);
	if (!raw || !t)
		return 0;
	native__take(&raw->native, me, NULL);
	emit(raw, NATIVE_SIZE(*raw, native));
	return 0;
}

static __always_inline void fill(struct raw_wake *raw, struct task_struct *me, struct task_struct *woken, u64 now)
{
	event__init(&raw->event, RAW_WAKE, 0, now);
	raw->woken_pid = woken->tgid;
	raw->woken_tid = woken->pid;
	raw->value = ((struct pt_regs *)bpf_task_pt_regs(woken))->dx;
	raw->python = 0;
	raw->parent = BPF_CORE_READ(me, real_parent, tgid);
	raw->bounded = 0;
	raw->native.ip = 0;
	raw->native.links = 0;
	raw->native.window = 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sample_waking, struct task_struct *woken)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct sample_thread *t, *mine;
	u64 now, futex;
	struct raw_wake *raw;
	u32 zero = 0;
	u8 how;

	/* most wake-ups end here, by what is in the cache of the waker's CPU */
	if (me->tgid != woken->tgid || !ends_waits(me))
		return 0;
	t = task__stored(&sample_threads, woken);
	if (!t || !t->since)
		return 0;
	futex = futex_of(woken);
	how = futex ? how_of(me, futex) : 0;
	if (!how || slices_stopped || recording__is_suspended())
		return 0;
	now = bpf_ktime_get_ns();
	if (now < t->since + WAKE_MIN)
		return 0;
	mine = task__stored(&sample_threads, me);
	raw = bpf_map_lookup_elem(&sample_wakes, &zero);
	if (!mine || !raw || waits_for_gil(woken, me, futex))
		return 0;
	fill(raw, me, woken, now);
	raw->since = t->since;
	raw->futex = futex;
	raw->lock = lock_of(woken, NULL, futex);
	raw->how = how;
	raw->bounded = how == SAMPLE_WAKE_FUTEX && !takes_stack(mine, now > t->since ? now - t->since : 0, now);
	if (how != SAMPLE_WAKE_FUTEX || raw->bounded) {
		emit(raw, NATIVE_SIZE_BARE(*raw, native));
		return 0;
	}
	raw->python = python_of(me);
	sample_send_wake(mine);
	return 0;
}
