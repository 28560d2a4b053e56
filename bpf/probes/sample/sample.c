// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of sampling: starts the clock, and turns what the programs send into events, because only the loader can
 * unwind and name native frames.
 */
#include "sample.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel/features.h"
#include "record/family.h"
#include "util/array.h"
#include "util/recent.h"

#define DEFAULT_HZ 99
#define USUAL_MAX  16384
#define SECOND	   1000000000ULL

/* As in sample.bpf.c. */
struct sample_cpu_ticks {
	u64 last, ticks, missed, last_short;
};

/* Intervals that are likely to have the same stack. object 0: any */
struct usual_key {
	u64 object; /* futex, else file */
	u32 tid;
	s32 nr; /* -1: in no call, or preempted */
	u32 reason; /* SAMPLE_PREEMPTED, SAMPLE_GIL or SAMPLE_OTHER: all others */
	u32 unused;
};

struct sample_state {
	u64 period, threshold; /* ns; 0: not asked for */
	u64 unstacked;
	struct recent usual; /* struct usual_key -> u32: the last stack of these intervals */
};

static struct sample_state *state_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_sample_clock));
}

static u32 asked_hz(struct session *s)
{
	u64 hz = session__number(s, "sample", "hz");

	/* only -t sample was given */
	if (!hz && !session__number(s, "sample", "off"))
		return DEFAULT_HZ;
	return hz > SECOND ? 0 : hz;
}

/* The program that takes the stacks of threads that were off the CPU: the cheapest one that the kernel allows. */
static const char *stack_taker(void)
{
	if (features__tracepoint("sched_exit_tp") && !session__test_switch("no-sched-exit"))
		return "sample_resumed";
	if (features__function("schedule") && !session__test_switch("no-fexit"))
		return "sample_scheduled";
	return "sample_back";
}

static int configure(struct session *s)
{
	bool at_return = !strcmp(stack_taker(), "sample_back");
	bool is_preemptible = !strcmp(stack_taker(), "sample_scheduled");
	int ret = session__set_variable(s, "sample_at_return", &at_return, sizeof(at_return));

	return ret ?: session__set_variable(s, "sample_is_preemptible", &is_preemptible, sizeof(is_preemptible));
}

static bool needs_program(struct session *s, const char *program)
{
	static const char *const takers[] = { "sample_resumed", "sample_scheduled", "sample_back" };

	for (u32 i = 0; i < ARRAY_LEN(takers); i++)
		if (!strcmp(program, takers[i]) && strcmp(program, stack_taker()))
			return false;
	/* a filter leaves no further process to find */
	if (!strcmp(program, "sample_waiters") && session__has_filter(s))
		return false;
	return strcmp(program, "sample_tick") ? session__number(s, "sample", "off") != 0 : asked_hz(s) != 0;
}

static void begin(struct session *s)
{
	u32 hz = asked_hz(s);

	recent__init(&state_of(s)->usual, sizeof(struct usual_key), sizeof(u32), USUAL_MAX);
	state_of(s)->threshold = session__number(s, "sample", "off");
	state_of(s)->period = hz ? SECOND / hz : 0;
	if (hz)
		session__attach_clock(s, "sample_tick", hz);
	session__run_iter(s, "sample_waiters", 0);
}

static enum sample_reason reason_of_call(const struct raw_sample *raw)
{
	switch (raw->nr) {
	case SYS_futex:
		return raw->gil_wait ? SAMPLE_GIL : SAMPLE_LOCK;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return SAMPLE_SLEEP;
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return SAMPLE_POLL;
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return SAMPLE_IO;
	case SYS_wait4:
	case SYS_waitid:
		return SAMPLE_CHILD;
	case SYS_pause:
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
		return SAMPLE_SIGNAL;
	}
	return SAMPLE_OTHER;
}

/* A moment of CLOCK_REALTIME becomes the time from the start of the wait. */
static s64 timeout_of(const struct session *s, const struct raw_sample *raw)
{
	struct timespec now;
	s64 offset;

	if (!raw->realtime)
		return raw->timeout;
	clock_gettime(CLOCK_REALTIME, &now);
	offset = now.tv_sec * (s64)SECOND + now.tv_nsec - (s64)session__now(s);
	return raw->timeout - offset > (s64)raw->start ? raw->timeout - offset - (s64)raw->start : 0;
}

static struct usual_key usual_key(const struct raw_sample *raw, const struct sample_off *e)
{
	bool is_preempted = e->reason == SAMPLE_PREEMPTED;

	return (struct usual_key){
		.object = is_preempted ? 0 :
			  e->lock      ? e->lock :
					 e->file,
		.tid = raw->event.tid,
		.nr = is_preempted ? -1 : raw->nr,
		.reason = is_preempted || e->reason == SAMPLE_GIL ? e->reason : SAMPLE_OTHER,
	};
}

/*
 * Sets the stack of an interval. One that was too short to have its own, or whose stack could not be read, gets the
 * last one of the same thread in the same call, of the same object if there is one.
 */
static void set_stack(struct sample_state *st, const struct raw_sample *raw, struct sample_off *e, u32 stack)
{
	struct usual_key key = usual_key(raw, e);
	u32 *usual;

	e->stack = stack;
	for (u32 i = key.object ? 0 : 1; i < 2; i++, key.object = 0) {
		usual = stack ? recent__get(&st->usual, &key) : recent__find(&st->usual, &key);
		if (usual && stack)
			*usual = stack;
		else if (usual && !e->stack)
			e->stack = *usual;
	}
	e->estimated = !stack && e->stack;
}

static void emit_off(struct session *s, const struct raw_sample *raw, u32 stack)
{
	struct sample_off e = {
		.span = { .event = raw->event, .start = raw->start },
		.reason = raw->reason,
		.in_call = raw->nr >= 0,
		.nr = raw->nr >= 0 ? raw->nr : 0,
		.file = raw->file,
		.futex = raw->nr == SYS_futex && !raw->gil_wait ? raw->futex : 0,
		.timeout = timeout_of(s, raw),
	};

	e.span.event.id = ID_sample_off;
	e.lock = e.futex ? raw->lock : 0;
	e.lock_owner = e.futex ? raw->lock_owner : 0;
	e.private = e.futex ? raw->private : 0;
	if (raw->reason == SAMPLE_OTHER && raw->nr >= 0)
		e.reason = reason_of_call(raw);
	/* it faulted: there is no call that could wait */
	if (raw->nr < 0 && raw->native.ip && (raw->reason == SAMPLE_BLOCKED || raw->reason == SAMPLE_DISK))
		e.reason = SAMPLE_FAULT;
	set_stack(state_of(s), raw, &e, stack);
	session__emit(s, &e, sizeof(e));
}

static void emit_cpu(struct session *s, const struct raw_sample *raw, u32 stack)
{
	struct sample_cpu e = {
		.event = raw->event,
		.period = state_of(s)->period,
		.stack = stack,
		.gil = raw->gil,
		.kernel = raw->kernel,
		.in_call = raw->kernel && raw->nr >= 0,
	};

	e.event.id = ID_sample_cpu;
	session__emit(s, &e, sizeof(e));
}

static u32 stack_of(struct session *s, struct native_thread *thread)
{
	u32 stack = session__native_stack(s, thread);

	state_of(s)->unstacked += !stack;
	return stack;
}

/* ns of BPF programs for a recorded wait or wake-up, most of which have a stack, measured by bpf_stats. */
#define WAIT_NS 4000

static void on_wake(struct session *s, const struct raw_wake *raw, u32 size)
{
	struct sample_wake e = {
		.event = raw->event,
		.since = raw->since,
		.futex = raw->futex,
		.lock = raw->lock,
		.stack = raw->python,
		.woken_pid = raw->woken_pid,
		.woken_tid = raw->woken_tid,
		.how = raw->how,
		.bounded = raw->bounded,
		.value = raw->value,
	};

	if (raw->native.ip)
		e.stack = stack_of(s, &(struct native_thread){
					      .raw = &raw->native,
					      .size = size - offsetof(struct raw_wake, native),
					      .pid = raw->event.pid,
					      .parent = raw->parent,
					      .time = raw->event.time,
					      .python = raw->python,
				      });
	e.event.id = ID_sample_wake;
	session__emit(s, &e, sizeof(e));
	session__add_probing(s, 0, WAIT_NS);
}

static void on_sample(struct session *s, const struct raw_sample *raw, u32 size)
{
	u32 stack = raw->unstacked ? 0 :
				     stack_of(s, &(struct native_thread){
							 .raw = &raw->native,
							 .size = size - offsetof(struct raw_sample, native),
							 .pid = raw->event.pid,
							 .parent = raw->parent,
							 .time = raw->event.time,
							 .python = raw->python,
						 });

	if (!raw->start) {
		emit_cpu(s, raw, stack);
		return;
	}
	emit_off(s, raw, stack);
	/* an open wait was written by an iterator, which costs nothing at switches */
	if (!(raw->event.flags & EVENT_OPEN))
		session__add_probing(s, 0, WAIT_NS);
}

static void on_event(struct session *s, const struct event *e, u32 size)
{
	if (e->id == RAW_SAMPLE && size >= offsetof(struct raw_sample, native.stack))
		on_sample(s, (const struct raw_sample *)e, size);
	else if (e->id == RAW_WAKE && size >= offsetof(struct raw_wake, native.stack))
		on_wake(s, (const struct raw_wake *)e, size);
	else if (e->id == RAW_BUSY)
		session__follow(s, e->pid);
}

static void on_tasks(struct session *s, const struct task_waits *w)
{
	struct sample_tasks e = {
		.event = { .time = w->time, .pid = w->pid, .tid = w->pid, .id = ID_sample_tasks },
		.period = w->period,
		.object = w->object,
		.stack = w->stack,
		.holder = w->holder,
		.last = w->last,
		.peer_high = w->peer_high,
		.peer_low = w->peer_low,
		.peer_port = w->peer_port,
		.tasks = w->tasks,
		.begun = w->begun,
		.all = w->all,
		.serves = w->serves,
	};

	session__emit(s, &e, sizeof(e));
}

static void write_clock(struct session *s, u64 now)
{
	struct sample_clock e = {
		.event = { .time = now, .id = ID_sample_clock },
		.period = state_of(s)->period,
		.threshold = state_of(s)->threshold,
		.unstacked = state_of(s)->unstacked,
	};
	int fd = session__map_fd(s, "sample_ticks"), cpus = libbpf_num_possible_cpus();
	struct sample_cpu_ticks *t = cpus > 0 ? calloc(cpus, sizeof(*t)) : NULL;
	u32 key = 0;

	if (t && fd >= 0 && !bpf_map_lookup_elem(fd, &key, t))
		for (int i = 0; i < cpus; i++) {
			e.ticks += t[i].ticks;
			e.missed += t[i].missed;
		}
	free(t);
	session__emit(s, &e, sizeof(e));
}

static void on_tick(struct session *s, u64 now)
{
	write_clock(s, now);
	session__run_iter(s, "sample_waiters", 0);
}

static void sizes(const struct session *s, table_size_fn *fn, void *arg)
{
	const struct recent *usual = &state_of(s)->usual;

	fn(&(struct table_size){ .name = "sample stacks",
				 .entries = recent__entries(usual),
				 .max = 2 * USUAL_MAX,
				 .evicted = usual->evicted,
				 .bytes = recent__bytes(usual) },
	   arg);
}

static void end(struct session *s)
{
	recent__free(&state_of(s)->usual);
}

/* The clock goes on: its cost does not depend on the load. */
static const char *const sliced[] = { "sample_switch", "sample_resumed", "sample_scheduled",
				      "sample_back",   "sample_waking",	 NULL };

static const struct family_part parts[] = {
	FAMILY_PART("sample_tick", "CPU samples"),
	FAMILY_PART("sample_switch", "stacks of threads off the CPU"),
	FAMILY_PART("sample_back", "stacks of threads off the CPU"),
	/* where the kernel lacks one of these, another one does the same */
	{ .programs = "sample_scheduled", .lacks = "stacks of threads off the CPU", .is_optional = true },
	{ .programs = "sample_resumed", .lacks = "stacks of threads off the CPU", .is_optional = true },
	FAMILY_PART("sample_waking", "which code ended long waits"),
	FAMILY_PART("sample_forked", "threads that begin meanwhile"),
	FAMILY_PART("sample_begin", "stacks of threads off the CPU"),
	FAMILY_PART("sample_waiters", "processes without a runtime whose threads wait"),
	FAMILY_PART("sample_open", "threads still off the CPU when the recording stopped"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(sample_host) = {
	.name = "sample",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.needs_program = needs_program,
	.configure = configure,
	.native = true,
	.python = true,
	.state = sizeof(struct sample_state),
	.begin = begin,
	.follow_iterator = "sample_begin",
	.follows_with = "off",
	.names_files = true,
	.event = on_event,
	.sizes = sizes,
	.end = end,
	.tasks = on_tasks,
	.tick = on_tick,
	.tick_ns = SECOND,
	.sliced = sliced,
	.open_iterator = "sample_open",
};
