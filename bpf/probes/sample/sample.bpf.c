// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock is one perf event per CPU, whose program runs in the timer's interrupt.
 *
 * When a thread is switched in, the length of its off-CPU interval is known, and so whether it must be recorded. The
 * stack is read after that, in the thread's own context and without a lock of the scheduler: as the switch ends
 * (sample_resumed), as schedule() returns (sample_scheduled), or where neither can be probed as the system call returns
 * (sample_back). In that last case the stack of a thread that left the CPU from its own code, preempted or by a page
 * fault, has to be read at the switch.
 */
#define PYTHON_WALK_TASKS
#include "core/arrival.bpf.h"
#include "core/python.bpf.h"
#include "core/slices.bpf.h"
#include "core/stack_budget.bpf.h"
#include "sample_busy.bpf.h"
#include "sample_record.bpf.h"
#include "sample_thread.bpf.h"
#include "sample_wait.bpf.h"

OPTION(sample, all, "every process, not only those with a runtime and busy native ones");
OPTION(sample, stacks, "a stack of every off-CPU interval, also of those below 5 ms; 10 us for each");
OPTION_NUMBER(sample, hz, "samples a second", "samples per second and CPU; the same as -F");
OPTION_NUMBER(sample, off, "ns", "off-CPU intervals of at least this length; the same as --off-cpu");

#define SECOND 1000000000ULL

struct sample_cpu_ticks {
	u64 last; /* ns */
	u64 ticks, missed;
	u64 last_short; /* when a wait below the threshold last got a stack on this CPU */
};

/* sample.c reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sample_cpu_ticks);
} sample_ticks SEC(".maps");

struct sample_threads_map sample_threads SEC(".maps");

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
	if (recording__is_suspended())
		return 0;
	if (!user_task__followed(task, option_sample_all)) {
		count_busy(task, now);
		return 0;
	}
	raw = process__is_captured(task->tgid) ? scratch(SCRATCH_CLOCK) : NULL;
	if (!raw)
		return 0;
	fill(raw, task, now, 0);
	raw->start = 0;
	raw->reason = SAMPLE_OTHER;
	/* the kernel's addresses are the upper half */
	raw->kernel = ctx->regs.ip >> 63;
	emit(raw, NATIVE_SIZE(*raw, native));
	return 0;
}

static __always_inline struct sample_thread *thread_of(struct task_struct *task)
{
	return task__stored(&sample_threads, task);
}

/* A global function, because it needs as much of the stack as walking does. */
__weak __noinline int sample_describe(struct raw_sample *raw, struct file_cache *cache, bool returns)
{
	if (raw && cache)
		describe_wait(raw, bpf_get_current_task_btf(), NULL, cache, returns);
	return 0;
}

/*
 * Stacks are taken as a system call returns (sample_back), and of a thread that leaves the CPU from its own code at the
 * switch; else as the thread gets the CPU, by sample_resumed or sample_scheduled.
 */
const volatile bool sample_at_return = false;
/* Stacks are taken by sample_scheduled, which may be preempted. Else the record that is being filled is one per CPU. */
const volatile bool sample_is_preemptible = false;

/*
 * Emits the off-CPU interval of a system call that has not returned yet, or is about to: the stack is the same as at
 * the switch. A global function, so that the verifier checks it once.
 */
__weak __noinline int sample_send(struct sample_thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct raw_sample *raw;
	bool unstacked;

	raw = sample_is_preemptible ? bpf_task_storage_get(&sample_kept, task, 0, 0) : scratch(SCRATCH_OFF);
	if (!raw || !t)
		return 0;
	/* from here on the thread may be preempted, and have another interval */
	raw->start = t->start;
	raw->event.time = t->end;
	raw->event.flags = t->start_before ? EVENT_STARTED_BEFORE : 0;
	raw->reason = t->reason;
	unstacked = t->unstacked;
	t->end = 0;
	raw->nr = -1;
	if (!task__in_32bit_call(task))
		raw->nr = (s32)((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;
	sample_describe(raw, &t->file, t->returns);
	raw->kernel = 1;
	if (unstacked) {
		fill_unstacked(raw, task, raw->event.time, raw->event.flags);
		/* to gets_stack() the first wait for the GIL is like those for locks: the call is the same */
		if (!raw->gil_wait || t->gil_stacked) {
			emit(raw, NATIVE_SIZE_BARE(*raw, native));
			return 0;
		}
	}
	fill(raw, task, raw->event.time, raw->event.flags);
	t->gil_stacked |= raw->gil_wait;
	emit(raw, NATIVE_SIZE(*raw, native));
	return 0;
}

/* The same of a thread that has gone on since then. */
static __noinline int send_bare(struct sample_thread *t)
{
	struct raw_sample *raw = scratch(SCRATCH_OFF);

	if (!raw || !t)
		return 0;
	bare(raw, bpf_get_current_task_btf(), t->start, t->end, t->reason);
	raw->nr = t->nr;
	if (t->start_before)
		raw->event.flags = EVENT_STARTED_BEFORE;
	t->end = 0;
	emit(raw, NATIVE_SIZE_BARE(*raw, native));
	return 0;
}

/* Stores the stack of a thread that leaves the CPU from its own code: there is no return from a call at which it
 * could be read. */
__weak __noinline int sample_keep(struct sample_thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct raw_sample *raw = bpf_task_storage_get(&sample_kept, task, 0, 0);

	if (!raw || !t)
		return 0;
	fill(raw, task, t->since, 0);
	raw->start = t->since;
	raw->reason = reason_of(t->state, t->iowait);
	raw->nr = -1;
	raw->lock = 0;
	raw->lock_owner = raw->private = 0;
	raw->timeout = 0;
	raw->file = raw->realtime = 0;
	t->kept = 1;
	return 0;
}

/*
 * Does an interval from the threshold on get a stack? The first ones of a thread and the first one of each call do, so
 * that the worker has a stack for the others. The sum at which the next one does is drawn, because equal sums would
 * always choose the same wait of a loop that takes as long.
 */
#define FIRST_STACKS 16

static __always_inline bool gets_stack(struct sample_thread *t, u64 ns)
{
	/* where a thread was preempted does not depend on its call */
	u64 call = 1ULL << (t->state ? t->nr & 63 : 62);

	if (ns < SAMPLE_STACK_NS && !option_sample_stacks) {
		if (stack__is_due(&t->stack_due, ns, SAMPLE_STACK_NS))
			t->stack_due = SAMPLE_STACK_NS / 2 + bpf_get_prandom_u32() % SAMPLE_STACK_NS;
		else if (t->stacks >= FIRST_STACKS && t->stacked_calls & call)
			return false;
	}
	t->stacked_calls |= call;
	t->stacks += t->stacks < FIRST_STACKS;
	return true;
}

/*
 * Is the interval of a thread that gets the CPU recorded? A thread whose waits are all below the threshold, as those
 * for a fast disk or a near server are, would have no record of them. So whenever its short waits sum up to SHORT_SUM,
 * the last of them is recorded with a stack: a wait is chosen with a probability that is proportional to its length. At
 * most one in SHORT_GAP on each CPU.
 */
#define SHORT_SUM (SECOND / 200)
#define SHORT_GAP (SECOND / 100)

static __always_inline bool is_recorded(struct sample_thread *t, u64 now)
{
	struct sample_cpu_ticks *cpu;
	u64 ns = now - t->since;
	u32 key = 0;

	t->unstacked = 0;
	if (ns >= option_sample_off) {
		t->unstacked = !gets_stack(t, ns);
		return true;
	}
	if (!t->state)
		return false;
	t->short_ns += ns;
	if (t->short_ns < SHORT_SUM)
		return false;
	t->short_ns = 0;
	cpu = bpf_map_lookup_elem(&sample_ticks, &key);
	if (!cpu || now - cpu->last_short < SHORT_GAP)
		return false;
	cpu->last_short = now;
	return true;
}

static __always_inline void arrives(struct sample_thread *t, struct task_struct *task, u64 now)
{
	struct raw_sample *raw;

	/* left from before a pause, if the iterator at its start failed */
	if (t->since < slices_resumed)
		t->since = 0;
	if (t->since && is_recorded(t, now)) {
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
	t->paused = 0;
}

/* The thread runs, but its switch to the CPU was not seen. */
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
	if (t->end && sample_at_return)
		/* a call that waits several times */
		sample_send(t);
	else if (t->end)
		send_bare(t);
	t->since = task__still_followed(task, option_sample_all, &t->followed) ? now : 0;
	t->state = state;
	t->exec = task->se.sum_exec_runtime;
	t->nr = task__in_32bit_call(task) ? -1 : (s32)regs->orig_ax;
	t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->before = 0;
	t->paused = 0;
	t->kept = 0;
	if (sample_at_return && t->since && (s32)regs->orig_ax < 0)
		sample_keep(t);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sample_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct bpf_local_storage *stored_prev = prev->bpf_storage, *stored_next = next->bpf_storage;
	struct sample_thread *t;
	u64 now;

	if (slices_stopped || BOTH_NULL(stored_prev, stored_next))
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

static __always_inline int resumed(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample_thread *t = thread_of(task);

	if (!t || slices_stopped)
		return 0;
	if (t->since)
		missed_arrival(t, task, bpf_ktime_get_ns());
	if (t->end)
		sample_send(t);
	return 0;
}

/*
 * The end of a switch, in the context of the thread that runs from here on: its user stack is what it was when it left,
 * and the run queue's lock has been released. From Linux 6.15 on (kernel/sched/core.c, include/trace/events/sched.h).
 */
SEC("tp_btf/sched_exit_tp")
int sample_resumed(void *ctx)
{
	return resumed();
}

/*
 * Where there is no such tracepoint: the return of schedule(), by which a thread leaves the CPU except where the kernel
 * preempts itself. A wait that began before tracing did is not seen here.
 */
SEC("fexit/schedule")
int sample_scheduled(void *ctx)
{
	return resumed();
}

/*
 * Where programs can't be attached to that either, a thread that waited in a system call is seen as that returns. It
 * costs each system call of the machine some 55 ns.
 */
SEC("tp_btf/sys_exit")
int BPF_PROG(sample_back, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample_thread *t = thread_of(task);

	if (!t || slices_stopped)
		return 0;
	if (t->since)
		missed_arrival(t, task, bpf_ktime_get_ns());
	if (t->end) {
		t->returns = 1;
		sample_send(t);
		t->returns = 0;
	}
	return 0;
}

/*
 * All of a thread's storage is made here and by sample_begin, also the walker's: not under the run
 * queue's lock (sched.bpf.c says why).
 */
static __always_inline struct sample_thread *new_thread(struct task_struct *task)
{
	struct sample_thread *t = bpf_task_storage_get(&sample_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t ||
	    ((sample_at_return || sample_is_preemptible) &&
	     !bpf_task_storage_get(&sample_kept, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)) ||
	    !bpf_task_storage_get(&python_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ||
	    !bpf_task_storage_get(&python_knowns, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		loss__count(EVENT_FAMILY(ID_sample_off), LOSS_STORAGE, bpf_ktime_get_ns());
	if (t && slices_stopped)
		t->paused = 1;
	return t;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sample_forked, struct task_struct *parent, struct task_struct *child)
{
	if (user_task__followed(parent, option_sample_all))
		new_thread(child);
	return 0;
}

/*
 * Threads that exist already: run when tracing or a slice of time begins, and when a process becomes one that is
 * followed.
 */
SEC("?iter/task")
int sample_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sample_thread *t;
	bool resumes;

	if (!task || !task->pid || task->flags & PF_KTHREAD || !task__passed_on(task, option_sample_all))
		return 0;
	t = bpf_task_storage_get(&sample_threads, task, 0, 0);
	if (t && (!t->paused || slices_stopped))
		return 0;
	resumes = t != NULL;
	if (!t)
		t = new_thread(task);
	/* for a process that has left the set, a switch after its return begins the first interval */
	if (!t || slices_stopped || task->on_cpu || !task->__state || !user_task__followed(task, option_sample_all))
		return 0;
	t->nr = task__in_32bit_call(task) ? -1 : (s32)((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;
	t->state = task->__state;
	t->exec = task->se.sum_exec_runtime;
	t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->before = 1;
	t->paused = 0;
	t->since = resumes ? slices_resumed : bpf_ktime_get_ns();
	return 0;
}

/*
 * Writes a thread that is off the CPU when tracing or a slice of time stops, blocked in something. Its stack does not
 * change until it runs again, and is read from here. Not 0: there was no room.
 */
static __always_inline long write_open(struct seq_file *seq, struct sample_thread *t, struct task_struct *task)
{
	struct raw_sample *raw = scratch(SCRATCH_OPEN);
	u64 now = slices_stopped ?: bpf_ktime_get_ns();
	struct pt_regs *regs;
	u32 size;

	if (!raw || !t->since || now < t->since + option_sample_off || (task->on_cpu && !slices_stopped) ||
	    !user_task__followed(task, option_sample_all))
		return 0;
	bare(raw, task, t->since, now, reason_of(t->state, t->iowait));
	raw->event.flags = EVENT_OPEN | (t->before ? EVENT_STARTED_BEFORE : 0);
	raw->event.cpu = task->thread_info.cpu;
	if (task->on_cpu || task->se.sum_exec_runtime != t->exec) {
		/* it was woken when all had ended: its stack is another one by now */
		raw->nr = t->nr;
	} else if (!task__in_32bit_call(task)) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		raw->nr = (s32)regs->orig_ax;
		raw->futex = regs->di;
		describe_wait(raw, task, task, &t->file, false);
		native__take(&raw->native, task, task);
		raw->python = python__stack_of_task(task, 0, STACK_FRAMES);
	}
	size = NATIVE_SIZE(*raw, native);
	return iter__write(seq, raw, size);
}

SEC("iter.s/task")
int sample_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sample_thread *t;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&sample_threads, task, 0, 0);
	/* if the reader's buffer is full, the program runs again for this thread */
	if (!t || write_open(ctx->meta->seq, t, task))
		return 0;
	t->since = t->end = 0;
	t->paused = 1;
	return 0;
}
