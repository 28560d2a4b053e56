// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A wait on a futex is one record, written when it ends; a thread is followed as in syscall.bpf.c. sched_waking, which
 * runs in the waker's context, finds the thread that released the lock. Only a thread that wakes the waiter by a futex
 * call on the address that the waiter waits on, or by its own end (pthread_join), counts as its waker.
 */
#include "core/futex.bpf.h"
#include "core/sonde.bpf.h"
#include "lock.h"
#include "lock_site.bpf.h"
#include "syscall_nr.h"

OPTION(lock, all, "every process, not only those with a runtime and busy native ones");

/* the same number in every ABI; newer than many headers */
#define NR_FUTEX_WAITV	 449
#define NR_FUTEX_WAKE	 454
#define NR_FUTEX_WAIT	 455
#define NR_FUTEX_REQUEUE 456

struct lock_thread {
	bool is_followed;
	bool waiting;
	bool released; /* it has released the lock that it waited for last, so the next wait begins a new episode */
	u32 number; /* of its last episode */
	u32 selected; /* see thread__followed() */
	u64 last; /* address of the futex that it waited for last; 0: none since it started, or since exec */
	u64 second; /* the futex to which the wait may be moved: FUTEX_WAIT_REQUEUE_PI; 0: none */
	u64 waiters; /* if it waits for several futexes, the address of its array of struct futex_waitv; else 0 */
	struct lock_wait wait;
};

struct {
	TASK_STORAGE(struct lock_thread);
} lock_threads SEC(".maps");

/* A futex call, decoded. */
struct futex_call {
	u64 futex, futex2;
	/* FUTEX_...; a newer call has that of the old one that it replaces. FUTEX_COMMAND, no command: futex_waitv() */
	u32 op;
	u32 value;
};

static __always_inline struct lock_thread *thread_of(struct task_struct *task)
{
	return task__stored(&lock_threads, task);
}

static __always_inline bool decode_old(struct futex_call *f, u64 futex, u32 op, u32 value, u64 futex2)
{
	f->futex = futex;
	f->futex2 = futex2;
	f->op = op & FUTEX_COMMAND;
	f->value = value;
	return true;
}

/* struct futex_waitv: u64 val, u64 uaddr, u32 flags, u32 reserved */
static __always_inline u64 futex_of_waiter(u64 waiters, u32 i)
{
	u64 futex = 0;

	bpf_probe_read_user(&futex, sizeof(futex), (const void *)(waiters + i * 24 + 8));
	return futex;
}

/* Decodes a system call; false: it does not use futexes. */
static __always_inline bool decode(struct futex_call *f, struct pt_regs *regs, u32 nr, bool compat)
{
	bool old = compat ? nr == SYS32_futex || nr == SYS32_futex_time64 : nr == SYS_futex;

	if (old && compat)
		return decode_old(f, (u32)regs->bx, regs->cx, regs->dx, (u32)regs->di);
	if (old)
		return decode_old(f, regs->di, regs->si, regs->dx, regs->r8);
	if (nr != NR_FUTEX_WAITV && (nr < NR_FUTEX_WAKE || nr > NR_FUTEX_REQUEUE))
		return false;
	f->futex = compat ? (u32)regs->bx : regs->di;
	f->futex2 = 0;
	f->value = compat ? regs->cx : regs->si;
	f->op = nr == NR_FUTEX_WAKE ? FUTEX_WAKE : nr == NR_FUTEX_WAIT ? FUTEX_WAIT : FUTEX_REQUEUE;
	if (nr == NR_FUTEX_REQUEUE) {
		f->futex2 = futex_of_waiter(f->futex, 1);
		f->futex = futex_of_waiter(f->futex, 0);
	}
	if (nr == NR_FUTEX_WAITV)
		f->op = FUTEX_COMMAND; /* several futexes: f->futex is the address of an array */
	return true;
}

static __always_inline void wait_begins(struct lock_thread *t, struct task_struct *task, struct pt_regs *regs,
					const struct futex_call *f)
{
	struct lock_wait *w = &t->wait;
	struct lock_range library;

	__builtin_memset(w, 0, sizeof(*w));
	event__init(&w->span.event, ID_lock_wait, 0, 0);
	w->lock = f->futex;
	w->value = f->value;
	w->op = f->op == FUTEX_COMMAND	       ? LOCK_WAITV :
		f->op == FUTEX_WAIT_REQUEUE_PI ? LOCK_REQUEUE :
		futex__locks_pi(f->op)	       ? LOCK_PI :
						 LOCK_WAIT;
	t->waiters = 0;
	if (w->op == LOCK_WAITV) {
		t->waiters = f->futex;
		w->lock = futex_of_waiter(f->futex, 0);
		w->value = 0;
	}
	t->second = w->op == LOCK_REQUEUE ? f->futex2 : 0;
	w->owner = futex__owner(f->futex, f->op, f->value, NULL);
	if (w->lock != t->last || t->released || !t->number)
		t->number++;
	t->last = w->lock;
	t->released = false;
	w->episode = t->number;
	/* find_site() can't search the stack of 32-bit code, whose return addresses have four bytes */
	if (!task__in_32bit_call(task)) {
		library = library_of(task, regs->ip);
		find_site(w, regs, &library);
	}
	w->span.start = bpf_ktime_get_ns();
	t->waiting = true;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(lock_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct futex_call f;
	struct lock_thread *t;

	if (!task->bpf_storage || !decode(&f, regs, id, task__in_32bit_call(task)))
		return 0;
	t = bpf_task_storage_get(&lock_threads, task, 0, 0);
	if (!t || !t->is_followed || !thread__followed(task, &t->selected))
		return 0;
	if (futex__waits(f.op) || f.op == FUTEX_COMMAND)
		wait_begins(t, task, regs, &f);
	else if (f.futex == t->last)
		t->released = true;
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(lock_exit, struct pt_regs *regs, long ret)
{
	u64 now = bpf_ktime_get_ns();
	struct lock_thread *t = thread_of(bpf_get_current_task_btf());
	struct lock_wait *w;

	if (!t || !t->waiting)
		return 0;
	t->waiting = false;
	w = &t->wait;
	w->span.event.time = now;
	w->result = ret < 0 ? ret : 0;
	if (t->waiters && ret > 0)
		w->lock = futex_of_waiter(t->waiters, ret);
	if (w->result && w->waker_tid) {
		/*
		 * A signal or a timeout ended the wait. Its interrupt ran on a CPU whose current thread was in a futex
		 * call on the same lock, so lock_waking() took that thread for the waker.
		 */
		w->waker_pid = 0;
		w->waker_tid = 0;
		w->woken = 0;
	}
	emit(w, sizeof(*w));
	return 0;
}

/* Does the current thread wake the waiters of this futex, by a futex call or by its end? */
static __always_inline bool ends_wait(struct task_struct *me, const struct lock_thread *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);
	struct futex_call f;

	if (me->flags & PF_KTHREAD)
		return false;
	if (me->flags & PF_EXITING)
		return true;
	if (!decode(&f, regs, regs->orig_ax, task__in_32bit_call(me)) || f.op == FUTEX_COMMAND)
		return false;
	/* the kernel may wake waiters of a priority-inheriting lock when another thread begins to wait for it */
	if (futex__waits(f.op) && !futex__locks_pi(f.op))
		return false;
	return t->waiters || f.futex == t->wait.lock || f.futex2 == t->wait.lock ||
	       (t->second && (f.futex == t->second || f.futex2 == t->second));
}

SEC("tp_btf/sched_waking")
int BPF_PROG(lock_waking, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct lock_thread *t = thread_of(task);

	if (!t || !t->waiting || !ends_wait(me, t))
		return 0;
	t->wait.woken = bpf_ktime_get_ns();
	t->wait.waker_pid = me->tgid;
	t->wait.waker_tid = me->pid;
	return 0;
}

static __always_inline struct lock_thread *new_thread(struct task_struct *task)
{
	struct lock_thread *t = bpf_task_storage_get(&lock_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		loss__count(EVENT_FAMILY(ID_lock_wait), LOSS_STORAGE, bpf_ktime_get_ns());
	return t;
}

/* Follows the child if its parent is followed, because the child may not be in the process set yet. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(lock_forked, struct task_struct *parent, struct task_struct *child)
{
	struct lock_thread *t = task__followed(parent, option_lock_all) ? new_thread(child) : NULL;

	if (t)
		t->is_followed = true;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(lock_thread_exit, struct task_struct *task)
{
	struct lock_thread *t = thread_of(bpf_get_current_task_btf());
	u32 tgid = task->tgid;

	if (!t)
		return 0;
	t->is_followed = false;
	if (!task__live_threads(task))
		bpf_map_delete_elem(&lock_libraries, &tgid);
	if (!t->waiting)
		return 0;
	t->waiting = false;
	t->wait.span.event.time = bpf_ktime_get_ns();
	t->wait.span.event.flags |= EVENT_OPEN;
	emit(&t->wait, sizeof(t->wait));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(lock_execed, struct task_struct *task)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct lock_thread *t = thread_of(me);
	u32 tgid = me->tgid;

	if (!t)
		return 0;
	bpf_map_delete_elem(&lock_libraries, &tgid);
	t->last = 0;
	if (!task__followed(me, option_lock_all))
		t->is_followed = false;
	return 0;
}

/* Follows threads that exist already: run when tracing begins, and when a process maps a runtime. */
SEC("?iter/task")
int lock_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct futex_call f;
	struct lock_thread *t;
	struct pt_regs *regs;
	struct lock_wait *w;

	if (!task || task->flags & (PF_EXITING | PF_KTHREAD) || !task__passed_on(task, option_lock_all))
		return 0;
	t = new_thread(task);
	if (!t || t->is_followed)
		return 0;
	t->is_followed = true;
	if (!task__followed(task, option_lock_all))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (!regs || !task->__state || (s32)regs->orig_ax < 0 ||
	    !decode(&f, regs, regs->orig_ax, task__in_32bit_call(task)))
		return 0;
	if (!futex__waits(f.op) || f.op == FUTEX_WAIT_REQUEUE_PI)
		return 0;
	w = &t->wait;
	/* a wait that was recorded before an exec may have left its values */
	__builtin_memset(w, 0, sizeof(*w));
	t->waiters = t->second = 0;
	w->span.event.pid = task->tgid;
	w->span.event.tid = task->pid;
	w->span.event.id = ID_lock_wait;
	w->span.event.flags = EVENT_STARTED_BEFORE;
	w->lock = f.futex;
	w->value = f.value;
	w->op = futex__locks_pi(f.op) ? LOCK_PI : LOCK_WAIT;
	/* the value of a robust futex contains the owner; other memory can't be read from here */
	if (w->op == LOCK_WAIT && f.value & FUTEX_WAITERS)
		w->owner = f.value & FUTEX_TID_MASK;
	w->episode = ++t->number;
	t->last = f.futex;
	w->span.start = bpf_ktime_get_ns();
	t->waiting = true;
	return 0;
}

/* Writes the waits that have not ended yet. */
SEC("iter/task")
int lock_open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct lock_thread *t;
	struct lock_wait w;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t || !t->waiting)
		return 0;
	w = t->wait;
	w.span.event.time = bpf_ktime_get_ns();
	w.span.event.flags |= EVENT_OPEN;
	iter__write(ctx->meta->seq, &w, sizeof(w));
	return 0;
}
