/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scheduler's events: when a thread was on a CPU and when off it. All readers get them from here: no
 * other file decodes the kinds sched_run and sched_off.
 */
#ifndef SONDE_MODEL_SCHED_SPAN_H
#define SONDE_MODEL_SCHED_SPAN_H

#include "model/query.h"
#include "probes/sched/sched.h"

/* What of a span is read beside its thread and times: columns that no reader asks for are not unpacked. The rest is 0. */
enum sched_span_part {
	SPAN_WHY = 1, /* state and wake of spans off the CPU */
	SPAN_LEFT = 2, /* state of spans on a CPU */
	SPAN_WAKER = 4,
	SPAN_OPEN = 8,
	SPAN_COUNTED = 16,
	SPAN_CPU = 32,
	SPAN_ALL = 63,
};

/* One span of one thread; those of a thread do not overlap, and tile the time for which it was followed. */
struct sched_span {
	u32 pid, tid;
	u64 start, end; /* ns */
	/*
	 * Of a span off the CPU: the thread waited in [start, wake) and was runnable in [wake, end). wake is start if it was
	 * runnable all the time, end if it was not woken. Of a span on a CPU: start.
	 */
	u64 wake;
	bool on_cpu;
	bool open; /* still in it when the recording ended or the thread was no longer followed */
	bool woken; /* it waited, and wake is the time of its wake-up */
	u16 cpu; /* where it ended */
	s64 state; /* enum sched_state: why it was off, or why it stopped running */
	s64 waker_kind; /* enum sched_waker, of a span off the CPU */
	u32 waker_pid, waker_tid; /* the thread that woke it, 0: an interrupt, or not known */
	u64 counted; /* ns, by the kernel's counters: run if on a CPU, waited for one if off it */
};

/* The fields of one of both kinds, looked up once */
struct sched_span_fields {
	const struct schema_event *event;
	struct common_fields common;
	bool on_cpu;
	const struct schema_field *state, *wake, *waker, *waker_pid, *waker_tid, *counted;
};

struct sched_span_fields sched_span_fields__of(const struct schema_event *e, u32 parts);
/* Into s, which is zeroed or was decoded by the same fields; v must be one of the event that f was made of. */
void sched_span__decode(struct sched_span *s, const struct view *v, const struct sched_span_fields *f);

/*
 * Calls fn for each span that overlaps the time asked for, of the selected processes and threads: first all on a CPU, then
 * all off it, each nearly in order of their ends. 0, or fn's first other result, or negative errno.
 */
int sched_spans__read(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg), void *arg);
/* Those off the CPU alone */
int sched_spans__read_off(const struct query *q, u32 parts, int (*fn)(const struct sched_span *s, void *arg),
			  void *arg);

#endif
