/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scheduler's events: when a thread was on and off a CPU. No other file decodes the kinds sched_run and sched_off.
 */
#pragma once

#include "model/query.h"
#include "probes/sched/sched.h"

/*
 * Which fields of a span are read beside its thread and times, so that no unused column is unpacked. Others are 0, and
 * without SPAN_WHY wake is start.
 */
enum sched_span_part {
	SPAN_WHY = 1, /* state, wake and stopper of spans off the CPU */
	SPAN_LEFT = 2, /* state of spans on a CPU */
	SPAN_WAKER = 4,
	SPAN_OPEN = 8,
	SPAN_COUNTED = 16,
	SPAN_CPU = 32,
	SPAN_NEXT = 64, /* next_tid, priority and allowed of spans on a CPU */
	SPAN_ALL = 127,
};

/* A span of a thread. A thread's spans do not overlap, and tile the time for which it was followed. */
struct sched_span {
	u32 pid, tid;
	u64 start, end; /* ns */
	/*
	 * Off a CPU, the thread waited in [start, wake) and was runnable in [wake, end): wake is start if it was
	 * runnable all the time, end if it was not woken. On a CPU, wake is start.
	 */
	u64 wake;
	bool on_cpu;
	bool open; /* it had not ended when the recording ended, or when sonde stopped following the thread */
	bool woken; /* the thread waited and was woken at `wake` */
	u16 cpu; /* the CPU on which it ended */
	s64 state; /* enum sched_state: why the thread was off a CPU, or why it stopped running */
	u32 stopper; /* off a CPU, stopped: the signal that did it; traced: the tracer's process, 0: not known */
	s64 waker_kind; /* enum sched_waker, off a CPU only */
	u32 waker_pid, waker_tid; /* the waker; 0: an interrupt, or not known */
	u32 current_pid, current_tid; /* the thread that ran when a softirq woke it: a packet's sender, or unrelated */
	u32 next_tid; /* on a CPU: the thread that ran there next; 0: none, or not known */
	u32 priority; /* on a CPU: as in struct sched_run */
	u32 allowed; /* on a CPU: on how many CPUs the thread may run; 0: not known */
	u64 counted; /* ns as the kernel counts them: on a CPU the time run, off a CPU the time waited for a CPU */
};

/* The fields of sched_run or sched_off, looked up once for each trace, or with their numbers for rows */
struct sched_span_fields {
	const struct schema_event *event;
	bool on_cpu;
	struct sched_column {
		const struct schema_field *field; /* NULL: not requested, or the trace lacks it */
		struct row_numbers numbers;
	} pid, tid, start, time, flags, cpu, state, wake, signal, tracer, waker, waker_pid, waker_tid, counted, next,
		allowed, priority;
};

/* rows: those that will be decoded; NULL: records */
struct sched_span_fields sched_span_fields__of(const struct schema_event *e, const struct rows *rows, u32 parts);
/* Decodes v, a row of f's rows or a record of its event, into s, which is zeroed or was decoded with the same f. */
void sched_span__decode(struct sched_span *s, const struct view *v, const struct sched_span_fields *f);
/*
 * A process has an id for each program that it executes (names.h). Cuts a run in which it executes one: *s becomes the
 * part before, which no switch ended, and *next the part after. Returns whether it did.
 */
bool sched_span__cut(struct sched_span *s, struct sched_span *next, const struct names *n);

/*
 * Calls fn for each span of the selected time, processes and threads: first all on a CPU, then all off one, each nearly
 * in order of their ends. Returns 0, fn's first other result or negative errno.
 */
int sched_spans__read(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg);
/* As sched_spans__read for spans off a CPU only. */
int sched_spans__read_off(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg),
			  void *arg);
