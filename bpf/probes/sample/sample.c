// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host's side of sampling: starts the clock, and makes events of what the
 * programs send, whose native frames only the loader can unwind and name.
 */
#include "sample.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record/family.h"
#include "record/native.h"

#define DEFAULT_HZ 99
#define SECOND	   1000000000ULL

/* As in sample.bpf.c. */
struct sample_cpu_ticks {
	u64 last, ticks, missed;
};

struct sample_state {
	u64 period, threshold; /* ns; 0: not asked for */
	u64 unstacked;
};

static struct sample_state *state_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_sample_clock));
}

static u32 asked_hz(struct session *s)
{
	u64 hz = session__number(s, "sample", "hz");

	/* -t sample alone */
	if (!hz && !session__number(s, "sample", "off"))
		return DEFAULT_HZ;
	return hz > SECOND ? 0 : hz;
}

static bool wants_program(struct session *s, const char *program)
{
	return strcmp(program, "sample_tick") ? session__number(s, "sample", "off") != 0 : asked_hz(s) != 0;
}

static void begin(struct session *s)
{
	u32 hz = asked_hz(s);

	state_of(s)->threshold = session__number(s, "sample", "off");
	state_of(s)->period = hz ? SECOND / hz : 0;
	if (hz)
		session__attach_clock(s, "sample_tick", hz);
}

static void on_mapped(struct session *s, struct file_facts *file, const void *own, const struct mapping *m)
{
	python__mapped(s, file, m);
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

static void emit_off(struct session *s, const struct raw_sample *raw, u32 stack)
{
	struct sample_off e = {
		.span = { .event = raw->event, .start = raw->start },
		.stack = stack,
		.reason = raw->reason,
		.in_call = raw->nr >= 0,
		.nr = raw->nr >= 0 ? raw->nr : 0,
	};

	e.span.event.id = ID_sample_off;
	if (raw->reason == SAMPLE_OTHER && raw->nr >= 0)
		e.reason = reason_of_call(raw);
	/* it faulted: there is no call that could wait */
	if (raw->nr < 0 && raw->native.ip && (raw->reason == SAMPLE_BLOCKED || raw->reason == SAMPLE_DISK))
		e.reason = SAMPLE_FAULT;
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
	};

	e.event.id = ID_sample_cpu;
	session__emit(s, &e, sizeof(e));
}

static void on_event(struct session *s, const struct event *e, u32 size)
{
	const struct raw_sample *raw = (const struct raw_sample *)e;
	struct native *native;
	u32 stack;

	if (e->id != RAW_SAMPLE || size < offsetof(struct raw_sample, native.stack))
		return;
	stack = raw->python;
	native = session__native(s);
	if (native)
		stack = native__stack(native, &(struct native_thread){
						      .raw = &raw->native,
						      .size = size - offsetof(struct raw_sample, native),
						      .pid = e->pid,
						      .parent = raw->parent,
						      .time = e->time,
						      .python = raw->python,
					      });
	state_of(s)->unstacked += !stack;
	if (raw->start)
		emit_off(s, raw, stack);
	else
		emit_cpu(s, raw, stack);
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
}

static const struct family_part parts[] = {
	FAMILY_PART("sample_tick", "CPU samples"),
	FAMILY_PART("sample_switch", "stacks of threads off the CPU"),
	FAMILY_PART("sample_back", "which call a thread waited in"),
	FAMILY_PART("sample_forked", "threads that begin meanwhile"),
	FAMILY_PART("sample_begin", "stacks of threads off the CPU"),
	FAMILY_PART("sample_open", "threads still off the CPU when the recording stopped"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(sample_host) = {
	.name = "sample",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.wants_program = wants_program,
	.native = true,
	.python = true,
	.state = sizeof(struct sample_state),
	.begin = begin,
	.follows = "sample_begin",
	.follows_with = "off",
	.mapped = on_mapped,
	.event = on_event,
	.tick = on_tick,
	.tick_ns = SECOND,
};
