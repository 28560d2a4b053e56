// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock is a perf event a CPU, whose program runs in the timer's interrupt.
 *
 * When a thread is switched in, its off-CPU interval is known, and whether it is long enough to be recorded. Mostly the thread
 * waited in a system call; then its stack is taken when that returns, so that none is walked for the many short waits, and
 * user memory is read without a lock of the scheduler. Where the thread left the CPU from its own code, preempted or by
 * a page fault, the stack has to be taken at the switch.
 */
#define PYTHON_WALK_TASKS
#include "core/arrival.bpf.h"
#include "core/native.bpf.h"
#include "core/python.bpf.h"
#include "core/python_gil.bpf.h"
#include "sample.h"

OPTION(sample, all, "every process, not only those with a runtime");
OPTION_NUMBER(sample, hz, "samples a second", "CPU samples a second and CPU; the same as -F");
OPTION_NUMBER(sample, off, "ns", "off-CPU intervals of at least this length; the same as --off-cpu");

/* include/linux/sched.h; the same numbers from 6.1 to 6.18 */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_NOLOAD	     0x0400
#define TASK_FROZEN	     0x8000
#define TS_COMPAT	     2
#define SECOND		     1000000000ULL

struct sample_cpu_ticks {
	u64 last; /* ns */
	u64 ticks, missed;
};

/* sample.c reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sample_cpu_ticks);
} sample_ticks SEC(".maps");

/* Too large for the stack. One a program: the clock's interrupts the other. */
enum { SCRATCH_CLOCK, SCRATCH_OFF, SCRATCH_OPEN, SCRATCHES };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, u32);
	__type(value, struct raw_sample);
} sample_scratch SEC(".maps");

struct sample_thread {
	u64 since; /* off the CPU since then, 0: it is on one, or not known */
	u64 start, end; /* of an off-CPU interval whose stack is still to be taken; end 0: none */
	u32 state;
	u8 iowait;
	u8 before; /* since is when tracing began */
	u8 start_before;
	u8 reason;
	u8 kept; /* its stack is in sample_kept */
};

struct {
	TASK_STORAGE(struct sample_thread);
} sample_threads SEC(".maps");

/* What a thread had on its stack when it left the CPU from its own code. */
struct {
	TASK_STORAGE(struct raw_sample);
} sample_kept SEC(".maps");

static __always_inline bool wanted(struct task_struct *task)
{
	return task->pid && !(task->flags & PF_KTHREAD) && task__followed(task, option_sample_all);
}

static __always_inline struct raw_sample *scratch(u32 which)
{
	return bpf_map_lookup_elem(&sample_scratch, &which);
}

#define GIL_SIZE 256 /* struct _gil_runtime_state and more: conditions and mutexes */

/* If the thread waits for a futex of the GIL it is in take_gil, or in the forced switch of drop_gil. */
static __always_inline void look_at_gil(struct raw_sample *raw, struct task_struct *task)
{
	u64 gil = 0;

	_Static_assert((int)SAMPLE_GIL_HELD == GIL_HELD_YES && (int)SAMPLE_GIL_NOT_HELD == GIL_HELD_NO, "one enum");
	raw->gil = python__gil_held(task, &gil);
	raw->gil_wait = gil && raw->nr == SYS_futex && raw->futex - gil < GIL_SIZE;
}

/* What both kinds have. */
static __always_inline void fill(struct raw_sample *raw, struct task_struct *task, u64 now)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	event__init(&raw->event, RAW_SAMPLE, 0, now);
	raw->start = 0;
	raw->parent = BPF_CORE_READ(task, real_parent, tgid);
	raw->nr = (s32)regs->orig_ax;
	raw->futex = regs->di;
	raw->gil = GIL_HELD_UNKNOWN;
	raw->gil_wait = 0;
	raw->reason = SAMPLE_OTHER;
	raw->python = 0;
	if (task->thread_info.status & TS_COMPAT) {
		/* 32-bit code has other stacks and other numbers */
		raw->nr = -1;
		raw->native.ip = 0;
		raw->native.links = 0;
		raw->native.window = 0;
		return;
	}
	native__take(&raw->native, task, NULL);
	raw->python = python__stack(STACK_FRAMES);
	if (raw->python)
		look_at_gil(raw, task);
}

static __always_inline void count_tick(u64 now)
{
	u64 period = SECOND / (option_sample_hz ?: 1), gap;
	struct sample_cpu_ticks *t;
	u32 key = 0;

	t = bpf_map_lookup_elem(&sample_ticks, &key);
	if (!t)
		return;
	gap = t->last ? now - t->last : 0;
	if (gap > period + period / 2)
		t->missed += (gap + period / 2) / period - 1;
	t->last = now;
	t->ticks++;
}

SEC("?clock/cpu")
int sample_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now = bpf_ktime_get_ns();
	struct raw_sample *raw;

	count_tick(now);
	if (!wanted(task))
		return 0;
	raw = scratch(SCRATCH_CLOCK);
	if (!raw)
		return 0;
	fill(raw, task, now);
	/* the kernel's addresses are the upper half */
	raw->kernel = ctx->regs.ip >> 63;
	emit(raw, NATIVE_SIZE(*raw, native));
	return 0;
}

static __always_inline struct sample_thread *thread_of(struct task_struct *task)
{
	return task__stored(&sample_threads, task);
}

static __always_inline u8 reason_of(u32 state, bool iowait)
{
	if (!state)
		return SAMPLE_PREEMPTED;
	if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN))
		return SAMPLE_STOPPED;
	if (iowait)
		return SAMPLE_DISK;
	if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		return SAMPLE_BLOCKED;
	return SAMPLE_OTHER;
}

/* A record without a stack: it never will be taken. */
static __always_inline void bare(struct raw_sample *raw, struct task_struct *task, u64 start, u64 end, u8 reason)
{
	raw->event.time = end;
	raw->event.pid = task->tgid;
	raw->event.tid = task->pid;
	raw->event.id = RAW_SAMPLE;
	raw->event.probe = 0;
	raw->event.flags = 0;
	raw->start = start;
	raw->python = 0;
	raw->parent = 0;
	raw->nr = -1;
	raw->futex = 0;
	raw->gil = 0;
	raw->gil_wait = 0;
	raw->kernel = 0;
	raw->reason = reason;
	raw->native.ip = 0;
	raw->native.links = 0;
	raw->native.window = 0;
}

/*
 * Sends the off-CPU interval of a system call that is over. The call still lasts, or is about to
 * return: the stack is what it was at the switch. Not static: the verifier then checks it once.
 */
__weak __noinline int sample_send(struct sample_thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct raw_sample *raw = scratch(SCRATCH_OFF);

	if (!raw || !t)
		return 0;
	fill(raw, task, t->end);
	raw->start = t->start;
	raw->reason = t->reason;
	raw->kernel = 1;
	if (t->start_before)
		raw->event.flags = EVENT_STARTED_BEFORE;
	t->end = 0;
	emit(raw, NATIVE_SIZE(*raw, native));
	return 0;
}

/* Keeps the stack of a thread that leaves from its own code: it has no call to return from, where this could be done. */
__weak __noinline int sample_keep(struct sample_thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct raw_sample *raw = bpf_task_storage_get(&sample_kept, task, 0, 0);

	if (!raw || !t)
		return 0;
	fill(raw, task, t->since);
	raw->start = t->since;
	raw->reason = reason_of(t->state, t->iowait);
	raw->nr = -1;
	t->kept = 1;
	return 0;
}

static __always_inline void arrives(struct sample_thread *t, struct task_struct *task, u64 now)
{
	struct raw_sample *raw;

	if (t->since && now - t->since >= option_sample_off) {
		raw = t->kept ? bpf_task_storage_get(&sample_kept, task, 0, 0) : NULL;
		if (raw) {
			raw->event.time = now;
			emit(raw, NATIVE_SIZE(*raw, native));
		} else {
			t->start = t->since;
			t->end = now;
			t->start_before = t->before;
			t->reason = reason_of(t->state, t->iowait);
		}
	}
	t->since = 0;
}

/* It runs, and nothing was seen of its coming back. */
static __noinline int missed_arrival(struct sample_thread *t, struct task_struct *task, u64 now)
{
	if (t && task)
		arrives(t, task, missed_arrival_time(task, run_queue_clock(task), t->since, now));
	return 0;
}

static __always_inline void leaves(struct sample_thread *t, struct task_struct *task, u32 state, u64 now)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (t->since)
		missed_arrival(t, task, now);
	/* a call that waits several times */
	if (t->end)
		sample_send(t);
	t->since = wanted(task) ? now : 0;
	t->state = state;
	t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->before = 0;
	t->kept = 0;
	if (t->since && (s32)regs->orig_ax < 0)
		sample_keep(t);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sample_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct bpf_local_storage *stored_prev = prev->bpf_storage, *stored_next = next->bpf_storage;
	struct sample_thread *t;
	u64 now;

	if (BOTH_NULL(stored_prev, stored_next))
		return 0;
	now = bpf_ktime_get_ns();
	t = stored_prev && prev->pid ? bpf_task_storage_get(&sample_threads, prev, 0, 0) : NULL;
	if (t)
		/* prev_state is what it was before the kernel looked for signals, which make it runnable again */
		leaves(t, prev, preempt || !prev->__state ? 0 : prev_state, now);
	t = stored_next && next->pid ? bpf_task_storage_get(&sample_threads, next, 0, 0) : NULL;
	if (t)
		arrives(t, next, now);
	return 0;
}

/* The thread is back, in its own context; its user stack is what it was when it left. */
SEC("tp_btf/sys_exit")
int BPF_PROG(sample_back, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample_thread *t = thread_of(task);

	if (!t)
		return 0;
	if (t->since)
		missed_arrival(t, task, bpf_ktime_get_ns());
	if (t->end)
		sample_send(t);
	return 0;
}

/*
 * All of a thread's storage is made here and by sample_begin, also the walker's: not under the run
 * queue's lock (sched.bpf.c says why).
 */
static __always_inline struct sample_thread *new_thread(struct task_struct *task)
{
	struct sample_thread *t = bpf_task_storage_get(&sample_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t || !bpf_task_storage_get(&sample_kept, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ||
	    !bpf_task_storage_get(&python_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ||
	    !bpf_task_storage_get(&python_knowns, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		loss__count(EVENT_FAMILY(ID_sample_off), LOSS_STORAGE, bpf_ktime_get_ns());
	return t;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sample_forked, struct task_struct *parent, struct task_struct *child)
{
	if (wanted(parent))
		new_thread(child);
	return 0;
}

/* Threads that exist already: run when tracing begins, and when a process becomes one that is followed. */
SEC("?iter/task")
int sample_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sample_thread *t;

	if (!task || !task->pid || task->flags & PF_KTHREAD || !task__introduced(task, option_sample_all))
		return 0;
	t = bpf_task_storage_get(&sample_threads, task, 0, 0);
	if (t)
		return 0;
	t = new_thread(task);
	/* of a process that is out of the set again, a switch while it is in begins the first interval */
	if (!t || task->on_cpu || !task->__state || !wanted(task))
		return 0;
	t->state = task->__state;
	t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->before = 1;
	t->since = bpf_ktime_get_ns();
	return 0;
}

/* Threads that are off the CPU when tracing stops, blocked in something. Their stacks do not change and are read from here. */
SEC("iter.s/task")
int sample_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct sample_thread *t;
	struct raw_sample *raw;
	struct pt_regs *regs;
	u32 size;
	u64 now;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&sample_threads, task, 0, 0);
	raw = scratch(SCRATCH_OPEN);
	now = bpf_ktime_get_ns();
	if (!t || !raw || task->on_cpu || !t->since || now - t->since < option_sample_off || !wanted(task))
		return 0;
	bare(raw, task, t->since, now, reason_of(t->state, t->iowait));
	raw->event.flags = EVENT_OPEN | (t->before ? EVENT_STARTED_BEFORE : 0);
	raw->event.cpu = task->thread_info.cpu;
	if (!(task->thread_info.status & TS_COMPAT)) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		raw->nr = (s32)regs->orig_ax;
		native__take(&raw->native, task, task);
		raw->python = python__stack_of_task(task, 0, STACK_FRAMES);
	}
	size = NATIVE_SIZE(*raw, native);
	iter__write(seq, raw, size);
	return 0;
}
