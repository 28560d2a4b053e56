// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each followed thread is always in one interval, on or off a CPU; a switch ends one and begins the next with a single
 * clock reading, so that a thread's intervals tile time. docs/sched.md has the reasons, the errors and the measured
 * costs.
 *
 * When did a woken thread become runnable? The kernel counts its run delay from the moment at which it is queued.
 * sched_waking comes before that (an idle CPU gets an interrupt and queues the thread itself), and sched_wakeup comes
 * at that moment but would be another program at every wake-up of the machine. Neither is needed where the kernel
 * counts the run delay (has_run_delay()): the program at the switch reads the counter, and adds what the kernel is
 * about to add to it, the run queue's clock minus the time at which the thread was queued. There sched_waking serves
 * only to find the waker. sched_wakeup can't find it, as it runs on the woken CPU, in the context of an unrelated task.
 */
#include "core/arrival.bpf.h"
#include "core/slices.bpf.h"
#include "core/sonde.bpf.h"
#include "sched.h"

OPTION(sched, all, "every process, not only those with a runtime and busy native ones");

/* include/linux/sched.h; the same numbers from 6.1 to 6.18 */
#define TASK_INTERRUPTIBLE   0x0001
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_PARKED	     0x0040
#define TASK_DEAD	     0x0080
#define TASK_NOLOAD	     0x0400
#define TASK_RTLOCK_WAIT     0x1000
#define TASK_FROZEN	     0x8000

/* include/linux/sched/jobctl.h */
#define JOBCTL_STOP_SIGMASK 0xffff /* the signal of its last stop */
#define JOBCTL_TRAP_FREEZE \
	(1UL << 23) /* cgroup v2 freezes it: then it sleeps as in a call, only in the kernel's trap */

/* include/linux/preempt.h; where interrupts are counted differs between kernels, see sched_interrupts */
#define SOFTIRQ_SERVED 0x000100

enum cpu_state {
	CPU_STATE_NONE = 0, /* not followed */
	CPU_STATE_UNKNOWN, /* followed since ->since; its first switch shows whether it was on a CPU */
	CPU_STATE_ON,
	CPU_STATE_OFF,
	CPU_STATE_PAUSED, /* followed, and has not been switched in the current slice of time */
};

struct open_interval {
	u64 since; /* 0: unknown, the interval makes no record */
	u64 run_delay; /* the kernel's counters when it last left a CPU, or when sonde began to follow it */
	u64 exec;
	u64 waking; /* only where the kernel's counter can't be read */
	u32 waker_pid, waker_tid;
	u16 waker;
	u16 state;
	u16 cpu_state;
	u16 cpu;
	u32 followed; /* processes_version when its process was last found to be followed */
};

struct {
	TASK_STORAGE(struct open_interval);
} intervals SEC(".maps");

/* What the family's host code (sched.c) finds in the kernel's BTF. */
const volatile s64 sched_preempt_count =
	0; /* the per-CPU preempt count's address minus that of the CPU's run queue; 0: not known */
const volatile u32 sched_interrupts = 0; /* the bits of the count that are not 0 in an interrupt or an NMI */

static __always_inline struct open_interval *interval_of(struct task_struct *task)
{
	return task__stored(&intervals, task);
}

/* Did its interval begin before the current slice of time? The caller then lets it begin with the slice. */
static __always_inline bool is_of_earlier_slice(const struct open_interval *st)
{
	return st->cpu_state == CPU_STATE_PAUSED || (st->since && st->since < slices_resumed);
}

static __always_inline struct open_interval *new_interval(struct task_struct *task)
{
	struct open_interval *st = bpf_task_storage_get(&intervals, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!st)
		loss__count(EVENT_FAMILY(ID_sched_run), LOSS_STORAGE, bpf_ktime_get_ns());
	else if (slices_stopped && st->cpu_state == CPU_STATE_NONE)
		st->cpu_state = CPU_STATE_PAUSED;
	return st;
}

static __always_inline void note_counters(struct open_interval *st, struct task_struct *task)
{
	st->run_delay = has_run_delay() ? task->sched_info.run_delay : 0;
	st->exec = task->se.sum_exec_runtime;
}

/*
 * The interval of a thread; NULL: it is not followed. Storage is created with a thread and by sched_begin, never
 * here: so a switch of threads that are not followed costs no lookup, and kernels before 6.4 may wake a thread when
 * they allocate storage, which must not happen with the run queue's lock held.
 */
static __always_inline struct open_interval *follow(struct task_struct *task)
{
	struct open_interval *st = bpf_task_storage_get(&intervals, task, 0, 0);
	bool resumes;

	if (!st)
		return NULL;
	resumes = st->cpu_state != CPU_STATE_NONE && is_of_earlier_slice(st);
	if (st->cpu_state != CPU_STATE_NONE && !resumes)
		return st;
	if (!task__followed(task, option_sched_all) || !process__is_captured(task->tgid)) {
		st->cpu_state = CPU_STATE_NONE;
		return NULL;
	}
	/* a thread that was followed before a pause has not been switched since the slice began */
	st->since = resumes ? slices_resumed : 0;
	st->cpu_state = CPU_STATE_UNKNOWN;
	note_counters(st, task);
	return st;
}

static __always_inline u16 state_of(struct task_struct *task, u32 state)
{
	if (state & TASK_DEAD)
		return SCHED_DEAD;
	if (state & TASK_FROZEN)
		return SCHED_FROZEN;
	if (state & TASK_INTERRUPTIBLE)
		return task->jobctl & JOBCTL_TRAP_FREEZE ? SCHED_FROZEN : SCHED_SLEEP;
	if (state & TASK_UNINTERRUPTIBLE)
		return state & TASK_NOLOAD ? SCHED_IDLE : SCHED_BLOCKED;
	/* a sleeping spinlock of a real-time kernel; ps says D too */
	if (state & TASK_RTLOCK_WAIT)
		return SCHED_BLOCKED;
	if (state & TASK_STOPPED)
		return SCHED_STOPPED;
	if (state & TASK_TRACED)
		return SCHED_TRACED;
	if (state & TASK_PARKED)
		return SCHED_PARKED;
	return state ? SCHED_OTHER : SCHED_RUNNABLE;
}

static __always_inline void fill(struct span *span, struct task_struct *task, const struct open_interval *st, u16 id,
				 u64 now)
{
	span->event.time = now;
	span->event.pid = task->tgid;
	span->event.tid = task->pid;
	span->event.id = id;
	span->event.flags = st->cpu_state == CPU_STATE_UNKNOWN ? EVENT_STARTED_BEFORE : 0;
	span->start = st->since;
}

/* The time in this interval that the kernel has counted, or is about to count, as waiting for a CPU. */
static __always_inline u64 waited(struct open_interval *st, struct task_struct *task, u64 clock, u64 now)
{
	u64 queued, delay;

	if (!has_run_delay()) {
		if (st->state == SCHED_RUNNABLE || st->state == SCHED_NEW)
			return now - st->since;
		return st->waking > st->since ? now - st->waking : 0;
	}
	/* run_delay includes the time for which the thread waited in the queues of CPUs that it was moved away from */
	delay = task->sched_info.run_delay - st->run_delay;
	queued = task->sched_info.last_queued;
	if (queued && clock > queued)
		delay += clock - queued;
	/* it may have waited before it was followed */
	return st->cpu_state == CPU_STATE_UNKNOWN && delay > now - st->since ? now - st->since : delay;
}

static __always_inline void fill_run(struct sched_run *run, struct task_struct *task, struct open_interval *st, u64 now)
{
	fill(&run->span, task, st, ID_sched_run, now);
	run->charged = task->se.sum_exec_runtime - st->exec;
	run->allowed = (u32)task->nr_cpus_allowed;
	run->priority = (u32)task->prio;
}

static __always_inline void fill_off(struct sched_off *off, struct task_struct *task, struct open_interval *st,
				     u64 clock, u64 now)
{
	fill(&off->span, task, st, ID_sched_off, now);
	off->state = st->state;
	off->waited = waited(st, task, clock, now);
	off->wake = st->since;
	if (st->state == SCHED_STOPPED)
		off->signal = task->jobctl & JOBCTL_STOP_SIGMASK;
	else if (st->state == SCHED_TRACED && task->ptrace)
		off->tracer = BPF_CORE_READ(task, parent, tgid);
	if (st->state == SCHED_RUNNABLE)
		/* it may still have the waker of a sleep that it never began */
		return;
	off->waker = st->waker;
	off->waker_pid = st->waker_pid;
	off->waker_tid = st->waker_tid;
	if (st->state != SCHED_NEW && off->waited < now - st->since)
		off->wake = now - off->waited;
}

/* Ends the off-CPU interval and begins one on the CPU. */
static __always_inline void arrive(struct open_interval *st, struct task_struct *task, u64 clock, u64 now)
{
	struct sched_off off = {};

	if (st->since && st->cpu_state != CPU_STATE_ON) {
		fill_off(&off, task, st, clock, now);
		emit(&off, sizeof(off));
	}
	st->cpu_state = CPU_STATE_ON;
	st->since = now;
	st->cpu = bpf_get_smp_processor_id();
	st->waker = WAKER_NONE;
	st->waker_pid = 0;
	st->waker_tid = 0;
}

/* Ends the interval on the CPU and begins one off it. */
static __always_inline void leave(struct open_interval *st, struct task_struct *task, u16 state, u32 next_tid, u64 now)
{
	struct sched_run run = {};

	/* read back from memory it is one unknown number for the verifier, which would otherwise follow each possible
	 * state */
	st->state = state;
	state = *(volatile u16 *)&st->state;
	if (st->since) {
		fill_run(&run, task, st, now);
		run.state = state;
		run.next_tid = next_tid;
	}
	st->cpu_state = CPU_STATE_OFF;
	st->since = now;
	note_counters(st, task);
	/*
	 * The process of an exiting thread may have left the set already: the thread is followed up to its last switch.
	 * Any other thread whose process left the set, by an exec or a filter, is no longer followed.
	 */
	if (state == SCHED_DEAD) {
		st->cpu_state = CPU_STATE_NONE;
	} else if (!task__still_followed(task, option_sched_all, &st->followed) && !(task->flags & PF_EXITING)) {
		st->cpu_state = CPU_STATE_NONE;
		run.span.event.flags |= EVENT_OPEN;
	}
	if (run.span.start)
		emit(&run, sizeof(run));
}

/* Keeps the intervals contiguous if the kernel did not run the program at the switch to the CPU. */
static __noinline int missed_arrival(struct open_interval *st, struct task_struct *task, u64 clock, u64 now)
{
	if (!st || !task)
		return 0;
	arrive(st, task, clock, missed_arrival_time(task, clock, st->since, now));
	return 0;
}

static __always_inline void missed_leaving(struct open_interval *st, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - st->exec;

	leave(st, task, SCHED_OTHER, 0, ran < now - st->since ? st->since + ran : now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct bpf_local_storage *stored_prev = prev->bpf_storage, *stored_next = next->bpf_storage;
	struct open_interval *out = NULL, *in = NULL;
	u64 now, clock = 0;

	if (slices_stopped || BOTH_NULL(stored_prev, stored_next))
		return 0;
	if (stored_prev && prev->pid)
		out = follow(prev);
	if (stored_next && next->pid)
		in = follow(next);
	if (BOTH_NULL(out, in))
		return 0;
	now = bpf_ktime_get_ns();
	/* an interval off the CPU that ends here ends on this run queue */
	if (in || out->cpu_state == CPU_STATE_OFF)
		clock = run_queue_clock(prev);
	if (out) {
		/*
		 * prev_state is the state before the kernel looked for signals. If a signal made the thread runnable
		 * again, prev->__state is 0; before 6.14 prev_state does not show that.
		 */
		if (preempt || !prev->__state)
			prev_state = 0;
		if (out->cpu_state == CPU_STATE_OFF)
			missed_arrival(out, prev, clock, now);
		leave(out, prev, state_of(prev, prev_state), next->pid, now);
	}
	if (in) {
		if (in->cpu_state == CPU_STATE_ON)
			missed_leaving(in, next, now);
		arrive(in, next, clock, now);
	}
	return 0;
}

/*
 * x86 keeps the preempt count in a per-CPU variable, which BPF code may name only
 * where the kernel lists its variables in kallsyms. Its distance from the CPU's
 * run queue, which is per-CPU too and which every task points to, works everywhere.
 */
static __always_inline bool preempt_count(u32 *count)
{
	struct cfs_rq *cfs = bpf_get_current_task_btf()->se.cfs_rq;
	u64 rq = 0;

	if (!sched_preempt_count || bpf_core_read(&rq, sizeof(rq), &cfs->rq))
		return false;
	return !bpf_probe_read_kernel(count, sizeof(*count), (const void *)(rq + sched_preempt_count));
}

static __always_inline void note_waker(struct open_interval *st)
{
	u64 pid_tgid = 0;
	u32 count = 0;

	if (!preempt_count(&count)) {
		/* the current thread may be one that was interrupted */
		st->waker = WAKER_NONE;
	} else if (count & sched_interrupts) {
		st->waker = WAKER_IRQ;
	} else if (count & SOFTIRQ_SERVED) {
		/* packets to this machine are delivered in a softirq of the sender's own system call */
		st->waker = WAKER_SOFTIRQ;
		pid_tgid = bpf_get_current_pid_tgid();
	} else {
		pid_tgid = bpf_get_current_pid_tgid();
		/* an idle CPU that polls takes other CPUs' requests without an interrupt */
		st->waker = pid_tgid ? WAKER_THREAD : WAKER_IRQ;
	}
	st->waker_pid = pid_tgid >> 32;
	st->waker_tid = (u32)pid_tgid;
}

/*
 * Runs in the waker's context, under a lock that admits one waker of a thread at a time. The last waker before the
 * thread runs again counts. A thread may be woken before the switch at which it leaves the CPU, so this switch must not
 * reset the waker.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *p)
{
	struct open_interval *st = interval_of(p);

	if (!st || st->cpu_state == CPU_STATE_NONE)
		return 0;
	note_waker(st);
	if (!has_run_delay())
		st->waking = bpf_ktime_get_ns();
	return 0;
}

/* Checks the parent, because the child's process may not be in the set yet. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_forked, struct task_struct *parent, struct task_struct *child)
{
	if (task__followed(parent, option_sched_all))
		new_interval(child);
	return 0;
}

/* A new thread becomes runnable for the first time. Its waker is the current thread, which created it. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *p)
{
	struct open_interval *st;

	if (slices_stopped || !p->bpf_storage)
		return 0;
	st = follow(p);
	if (!st)
		return 0;
	st->cpu_state = CPU_STATE_OFF;
	st->since = bpf_ktime_get_ns();
	st->state = SCHED_NEW;
	st->run_delay = 0;
	st->exec = 0;
	note_waker(st);
	return 0;
}

/* Existing threads: runs when tracing or a slice of time begins, and when sonde begins to follow a process. */
SEC("?iter/task")
int sched_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct open_interval *st;

	if (!task || !task->pid || !task__passed_on(task, option_sched_all) || task->flags & PF_EXITING)
		return 0;
	st = new_interval(task);
	/* if its process has left the set meanwhile, its first interval begins at a switch after the process returns */
	if (!st || slices_stopped || (st->cpu_state != CPU_STATE_NONE && !is_of_earlier_slice(st)) ||
	    !task__followed(task, option_sched_all))
		return 0;
	/* the thread may be switched meanwhile; its first switch shows where it was */
	st->since = st->cpu_state != CPU_STATE_NONE ? slices_resumed : bpf_ktime_get_ns();
	st->state = state_of(task, task->__state);
	note_counters(st, task);
	st->cpu = task->thread_info.cpu;
	st->cpu_state = CPU_STATE_UNKNOWN;
	return 0;
}

/* Writes the interval that is open, up to the end of the slice or of the recording. Not 0: there was no room. */
static __always_inline long write_open(struct seq_file *seq, struct open_interval *st, struct task_struct *task)
{
	struct sched_run run = {};
	struct sched_off off = {};
	u64 clock = run_queue_clock(task);

	if (st->cpu_state == CPU_STATE_ON || (st->cpu_state == CPU_STATE_UNKNOWN && task->on_cpu)) {
		fill_run(&run, task, st, slices_stopped);
		run.span.event.cpu = st->cpu;
		run.span.event.flags |= EVENT_OPEN;
		return iter__write(seq, &run, sizeof(run));
	}
	fill_off(&off, task, st, clock, slices_stopped);
	/* not woken yet, or only since the slice ended */
	if ((task->__state || task->se.sum_exec_runtime != st->exec) && st->state != SCHED_RUNNABLE) {
		off.wake = 0;
		off.waited = 0;
	}
	off.span.event.cpu = st->cpu;
	off.span.event.flags |= EVENT_OPEN;
	return iter__write(seq, &off, sizeof(off));
}

/* When a slice of time or the recording ends. */
SEC("iter/task")
int sched_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct open_interval *st;

	/* at the end of a slice core_slices_pause has set it; at the end of the recording the intervals end now */
	if (!slices_stopped)
		slices_stopped = bpf_ktime_get_ns();
	if (!task)
		return 0;
	st = bpf_task_storage_get(&intervals, task, 0, 0);
	if (!st || st->cpu_state == CPU_STATE_NONE || st->cpu_state == CPU_STATE_PAUSED)
		return 0;
	/* if the reader's buffer is full, the program runs again for this thread */
	if (st->since && st->since < slices_stopped && write_open(ctx->meta->seq, st, task))
		return 0;
	st->cpu_state = CPU_STATE_PAUSED;
	st->waker = WAKER_NONE;
	st->waker_pid = 0;
	st->waker_tid = 0;
	return 0;
}
