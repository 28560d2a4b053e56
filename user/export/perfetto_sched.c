// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Draws the scheduler's tracks: a CPU's switches, derived from the runs of threads.
 *
 * Threads that were not followed have no runs. Between two runs of followed threads the CPU is shown as idle, because
 * it is not known when other threads ran.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto.h"
#include "util/array.h"

#define SWITCHES_MAX 512 /* of a CPU, in one packet */
#define PRIORITY     120 /* the kernel's default; not recorded */
#define CPUS_MAX     65536u

enum { TASK_NEWTASK = 235 }; /* FtraceEvent */
#define CLONE_THREAD 0x10000 /* include/uapi/linux/sched.h */

struct cpu_switch {
	u64 time;
	u32 next;
	u32 state; /* as the kernel's prev_state */
	const char *name; /* of next */
};

struct sched_cpu {
	bool used;
	u64 end; /* of the last run; the switch at its end is not written yet, as the next thread is not known */
	u32 running; /* 0: idle */
	const char *name; /* name of that thread */
	u32 state; /* its state at the end of the run */
	u32 full_switch_frame; /* the last zstd frame with a sched_switch event of this CPU outside of compact_sched */
	u32 n;
	struct cpu_switch *switches;
	struct pb events; /* outside of compact_sched: FtraceEventBundle.event */
};

/*
 * Returns prev_state of sched_switch: __trace_sched_switch_state() in include/trace/events/sched.h. 256 is
 * TASK_REPORT_MAX, which viewers show as "R+". SCHED_RUNNABLE becomes TASK_REPORT_MAX, which means preempted, also for
 * a thread that yielded: sonde does not record the difference.
 */
static u32 kernel_state(s64 state)
{
	static const u32 states[] = { [SCHED_RUNNABLE] = 256, [SCHED_SLEEP] = 1,  [SCHED_BLOCKED] = 2,
				      [SCHED_STOPPED] = 4,    [SCHED_TRACED] = 8, [SCHED_DEAD] = 16,
				      [SCHED_PARKED] = 64,    [SCHED_IDLE] = 128, [SCHED_FROZEN] = 2 };

	return state >= 0 && (size_t)state < ARRAY_LEN(states) ? states[state] : 1;
}

static struct sched_cpu *get(struct perfetto *p, u32 number)
{
	struct sched_cpu *more;
	u32 want = number + 1;

	if (number >= CPUS_MAX)
		return NULL;
	if (want > p->n_cpus) {
		more = realloc(p->cpus, want * sizeof(*more));
		if (!more)
			return NULL;
		memset(more + p->n_cpus, 0, (want - p->n_cpus) * sizeof(*more));
		p->cpus = more;
		p->n_cpus = want;
	}
	more = &p->cpus[number];
	if (!more->switches)
		more->switches = malloc(SWITCHES_MAX * sizeof(*more->switches));
	more->used = true;
	return more->switches ? more : NULL;
}

/* Writes a column of compact_sched: value() of each switch; value NULL: the delta-encoded timestamps. */
static void put_column(struct perfetto *p, const struct sched_cpu *c, u32 field,
		       u64 (*value)(const struct cpu_switch *s))
{
	size_t at = pb__begin(&p->packet, field);
	u64 last = 0, time;
	u32 i;

	for (i = 0; i < c->n; i++) {
		if (value) {
			pb__varint(&p->packet, value(&c->switches[i]));
			continue;
		}
		time = perfetto__boottime(p, c->switches[i].time);
		pb__varint(&p->packet, time - last);
		last = time;
	}
	pb__end(&p->packet, at);
}

static u64 state_of(const struct cpu_switch *s)
{
	return s->state;
}

static u64 next_of(const struct cpu_switch *s)
{
	return s->next;
}

static u64 priority_of(const struct cpu_switch *s)
{
	return PRIORITY;
}

/* Writes the distinct names, and for each switch the index of its name. */
static void put_names(struct perfetto *p, const struct sched_cpu *c)
{
	const char *names[SWITCHES_MAX];
	u32 numbers[SWITCHES_MAX], i, j, n = 0;
	size_t at;

	for (i = 0; i < c->n; i++) {
		for (j = 0; j < n && names[j] != c->switches[i].name; j++)
			;
		if (j == n) {
			names[n++] = c->switches[i].name;
			pb__text(&p->packet, 5, names[j], strlen(names[j]));
		}
		numbers[i] = j;
	}
	at = pb__begin(&p->packet, 6);
	for (i = 0; i < c->n; i++)
		pb__varint(&p->packet, numbers[i]);
	pb__end(&p->packet, at);
}

static void flush(struct perfetto *p, u32 number)
{
	struct sched_cpu *c = &p->cpus[number];
	size_t bundle, compact;

	if (!c->n && !c->events.len)
		return;
	packet__begin(p, 0);
	bundle = pb__begin(&p->packet, PACKET_FTRACE_EVENTS);
	pb__int(&p->packet, 1, number);
	p->packet.failed |= c->events.failed;
	pb__append(&p->packet, c->events.data, c->events.len);
	if (c->n) {
		compact = pb__begin(&p->packet, 4);
		put_column(p, c, 1, NULL);
		put_column(p, c, 2, state_of);
		put_column(p, c, 3, next_of);
		put_column(p, c, 4, priority_of);
		put_names(p, c);
		pb__end(&p->packet, compact);
	}
	pb__end(&p->packet, bundle);
	packet__end(p, false);
	c->n = 0;
	c->events.len = 0;
}

static const char *name_of(const struct perfetto *p, u32 pid, u32 tid)
{
	const char *name = tid ? names__comm(p->e->names, pid, tid) : "swapper";

	return name ? name : "";
}

/* Writes a CPU's first switch in a frame as sched_switch event: compact_sched does not name the previous thread. */
static void put_full_switch(struct perfetto *p, struct sched_cpu *c, const struct cpu_switch *s)
{
	size_t event = pb__begin(&c->events, 2), at;

	pb__int(&c->events, 1, perfetto__boottime(p, s->time));
	pb__int(&c->events, 2, c->running);
	at = pb__begin(&c->events, 4);
	if (c->running)
		pb__text(&c->events, 1, c->name, strlen(c->name));
	else
		pb__text(&c->events, 1, "swapper", 7);
	pb__int(&c->events, 2, c->running);
	pb__int(&c->events, 3, PRIORITY);
	pb__int(&c->events, 4, s->state);
	pb__text(&c->events, 5, s->name, strlen(s->name));
	pb__int(&c->events, 6, s->next);
	pb__int(&c->events, 7, PRIORITY);
	pb__end(&c->events, at);
	pb__end(&c->events, event);
}

static void add_switch(struct perfetto *p, u32 number, u64 time, u32 next, const char *name)
{
	struct sched_cpu *c = &p->cpus[number];
	struct cpu_switch s = { time, next, c->running ? c->state : 0, name };

	if (c->full_switch_frame != p->frame) {
		c->full_switch_frame = p->frame;
		put_full_switch(p, c, &s);
	} else {
		c->switches[c->n++] = s;
	}
	c->running = next;
	c->name = s.name;
	if (c->n == SWITCHES_MAX)
		flush(p, number);
}

/* Decodes a span; the fields are looked up once per trace. */
static struct sched_span span_of(const struct view *v, struct sched_span_fields *f)
{
	struct sched_span s = { 0 };

	if (f->event != v->event)
		*f = sched_span_fields__of(v->event, NULL, SPAN_ALL);
	sched_span__decode(&s, v, f);
	return s;
}

int perfetto__run(struct perfetto *p, const struct view *v)
{
	struct sched_span s = span_of(v, &p->run_fields), next;
	u32 thread = names__number(p->e->names, s.tid), number = s.cpu;
	struct sched_cpu *c = get(p, number);

	if (!c)
		return -ENOMEM;
	if (s.start < c->end || s.end < s.start) {
		p->unordered++;
		return 0;
	}
	perfetto__thread(p, s.pid, s.tid);
	/* No followed thread ran between the two runs. */
	if (c->running && c->end < s.start)
		add_switch(p, number, c->end, 0, name_of(p, 0, 0));
	add_switch(p, number, s.start, thread, name_of(p, s.pid, s.tid));
	c->end = s.end;
	if (sched_span__cut(&s, &next, p->e->names)) {
		c->state = kernel_state(SCHED_RUNNABLE);
		/* after perfetto__exec */
		add_switch(p, number, next.start + 1, thread, name_of(p, next.pid, next.tid));
	}
	c->state = kernel_state(s.state);
	return 0;
}

/* Writes the wake-up that ended a time off the CPU, as the event sched_waking of the waker's thread. */
int perfetto__off(struct perfetto *p, const struct view *v)
{
	struct sched_span s = span_of(v, &p->off_fields);
	u32 thread = names__number(p->e->names, s.tid), number = s.cpu;
	struct sched_cpu *c = get(p, number);
	const char *name = name_of(p, s.pid, s.tid);
	u64 wake = s.wake;
	size_t event, at;

	if (!c)
		return -ENOMEM;
	perfetto__thread(p, s.pid, s.tid);
	if (s.waker_tid)
		perfetto__thread(p, s.waker_pid, s.waker_tid);
	/* A preempted thread needs no wake-up. */
	if (!s.woken && s.state != SCHED_NEW)
		return 0;
	/* Perfetto drops a wake-up at the very time of the switch that it causes. */
	if (wake == s.end && wake > s.start)
		wake--;
	event = pb__begin(&c->events, 2);
	pb__int(&c->events, 1, perfetto__boottime(p, wake));
	pb__int(&c->events, 2, names__number(p->e->names, s.waker_tid));
	if (s.waker_kind == WAKER_SOFTIRQ || s.waker_kind == WAKER_IRQ)
		pb__int(&c->events, 5, s.waker_kind == WAKER_SOFTIRQ ? 0x10 : 0x08); /* TRACE_FLAG_SOFTIRQ, _HARDIRQ */
	at = pb__begin(&c->events, 20);
	pb__text(&c->events, 1, name, strlen(name));
	pb__int(&c->events, 2, thread);
	pb__int(&c->events, 3, PRIORITY);
	pb__int(&c->events, 4, 1);
	pb__int(&c->events, 5, number);
	pb__end(&c->events, at);
	pb__end(&c->events, event);
	if (c->events.len > 16384)
		flush(p, number);
	return 0;
}

/*
 * Perfetto assigns the scheduler's events of a thread number to the thread that it knows by that number, so a thread
 * that reuses one must be announced by the kernel's event for new tasks.
 */
static int announce(struct perfetto *p, const struct view *v, u32 pid, u32 tid)
{
	struct common_fields f = common_fields__of(v->event);
	u32 parent = names__number(p->e->names, (u32)view__s64(v, f.tid));
	u32 number = (u32)view__s64(v, f.cpu);
	struct sched_cpu *c = tid < TRACE_TASK_IDS ? NULL : get(p, number);
	const char *name = name_of(p, pid, tid);
	size_t event, at;

	if (!c)
		return tid < TRACE_TASK_IDS || number >= CPUS_MAX ? 0 : -ENOMEM;
	event = pb__begin(&c->events, 2);
	pb__int(&c->events, 1, perfetto__boottime(p, (u64)view__s64(v, f.time)));
	pb__int(&c->events, 2, parent);
	at = pb__begin(&c->events, TASK_NEWTASK);
	pb__int(&c->events, 1, names__number(p->e->names, tid));
	pb__text(&c->events, 2, name, strlen(name));
	pb__int(&c->events, 3, pid == tid ? 0 : CLONE_THREAD);
	pb__end(&c->events, at);
	pb__end(&c->events, event);
	flush(p, number);
	return 0;
}

int perfetto__fork(struct perfetto *p, const struct view *v)
{
	return announce(p, v, (u32)view__get(v, "child_pid"), (u32)view__get(v, "child_tid"));
}

int perfetto__exec(struct perfetto *p, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid");
	const struct task *task = names__task(p->e->names, pid, 0);

	return task && task->start == (u64)view__get(v, "time") ? announce(p, v, pid, pid) : 0;
}

void perfetto__flush_sched(struct perfetto *p, bool last)
{
	u32 i;

	for (i = 0; i < p->n_cpus; i++) {
		if (!p->cpus[i].used)
			continue;
		if (last && p->cpus[i].running)
			add_switch(p, i, p->cpus[i].end, 0, name_of(p, 0, 0));
		flush(p, i);
	}
}

void perfetto__free_sched(struct perfetto *p)
{
	u32 i;

	for (i = 0; i < p->n_cpus; i++) {
		free(p->cpus[i].switches);
		pb__free(&p->cpus[i].events);
	}
	free(p->cpus);
}
