/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of training loops: a step ends with a range of a certain name, by default that of the optimizer's step().
 * With --schedule the program that ends a step decides whether the next one is recorded, so that exactly the active
 * steps are, although attaching and detaching the other probes takes the loader longer than a step.
 */
#pragma once

#include "core/schedule.h"
#include "core/sonde.bpf.h"
#include "torch.h"

const volatile bool torch_counts_steps = false; /* --step or --schedule */
const volatile bool torch_scheduled = false;
/* A struct step_schedule, which the skeleton of the BPF object does not know. */
const volatile u32 torch_schedule[sizeof(struct step_schedule) / sizeof(u32)] = { 0, 0, 0, 1, 0 };
#define TORCH_SCHEDULE ((const volatile struct step_schedule *)torch_schedule)
/* The name of the ranges that end steps, or how it begins; with its NUL if it is the whole name. */
const volatile char torch_step_name[TORCH_STEP_NAME] = "Optimizer.step#";
const volatile u32 torch_step_len = sizeof("Optimizer.step#") - 1;
/* Without --step the class of the optimizer, which follows that, tells ranges of several optimizers apart. */
const volatile bool torch_step_by_class = true;
/* Of processes that were started at or after this time all steps are counted, ns. */
const volatile u64 torch_whole_since = 0;

/* 1: all probes are attached. The loader sets it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} torch_attached SEC(".maps");

/*
 * Words of a range's name, from its second one on, that tell ranges of several optimizers apart: the class follows 15
 * bytes.
 */
#define TORCH_BOUNDARY 5

/* The training loop of a process. */
struct torch_loop {
	u64 started; /* start of the process, because pids are reused */
	u64 step; /* number of the step that runs now */
	u64 boundary; /* when it began; 0: not known */
	u64 postponed; /* steps by which the schedule is late */
	u64 active_since; /* ns */
	u64 name[TORCH_BOUNDARY]; /* of the range that ends steps */
	u32 phase, cycle;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* tgid */
	__type(value, struct torch_loop);
} torch_loops SEC(".maps");

static __always_inline bool torch__is_attached(void)
{
	u32 zero = 0, *attached = bpf_map_lookup_elem(&torch_attached, &zero);

	return attached && *attached;
}

/*
 * Is what this process does now recorded? A process without a loop, such as a worker of a data loader, is while others
 * are.
 */
__weak __noinline int torch__is_active(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = task->tgid;
	struct torch_loop *l = bpf_map_lookup_elem(&torch_loops, &tgid);

	if (!l || l->started != task__process_start(task))
		return !recording__is_suspended();
	return l->phase == STEP_ACTIVE;
}

static __always_inline bool torch__records(void)
{
	return !torch_scheduled || torch__is_active();
}

/* The phase of the step that begins. An active one needs all probes: until they are attached the schedule waits. */
static __always_inline u32 torch__phase(struct torch_loop *l)
{
	u64 step = l->step - l->postponed;
	u32 phase = step_schedule__phase(TORCH_SCHEDULE, step);

	if (phase == STEP_ACTIVE && l->phase != STEP_ACTIVE && !torch__is_attached()) {
		l->postponed++;
		return STEP_WARMUP;
	}
	l->cycle = step_schedule__cycle(TORCH_SCHEDULE, step);
	return phase;
}

static __always_inline void torch__begin_step(struct torch_loop *l, u64 now)
{
	struct torch_phase e = {};
	u32 before = l->phase, cycle = l->cycle;

	l->phase = torch__phase(l);
	if (l->phase == before && (l->cycle == cycle || l->phase != STEP_ACTIVE))
		return;
	event__init(&e.event, ID_torch_phase, 0, now);
	e.step = l->step;
	e.postponed = l->postponed;
	e.since = before == STEP_ACTIVE ? l->active_since : 0;
	e.cycle = l->cycle;
	e.phase = l->phase;
	if (l->phase == STEP_ACTIVE)
		l->active_since = now;
	emit(&e, sizeof(e));
}

static __always_inline void torch__emit_step(const struct torch_loop *l, u64 now)
{
	struct torch_step e = {};

	event__init(&e.span.event, ID_torch_step, 0, now);
	e.span.start = l->boundary;
	e.step = l->step;
	e.cycle = torch_scheduled ? l->cycle : 0;
	emit(&e, sizeof(e));
}

/* The loop of the current process, which is new with its first step. */
static __always_inline struct torch_loop *torch__loop(u32 tgid, const u64 *name)
{
	u64 started = task__process_start(bpf_get_current_task_btf());
	struct torch_loop *l = bpf_map_lookup_elem(&torch_loops, &tgid), new = { .started = started };

	if (l && l->started == started)
		return l;
	__builtin_memcpy(new.name, name, sizeof(new.name));
	if (started >= torch_whole_since) {
		new.boundary = new.active_since = started;
		new.phase = step_schedule__phase(TORCH_SCHEDULE, 0);
		new.cycle = step_schedule__cycle(TORCH_SCHEDULE, 0);
	}
	bpf_map_update_elem(&torch_loops, &tgid, &new, BPF_ANY);
	return bpf_map_lookup_elem(&torch_loops, &tgid);
}

/* Called when a range has ended: begins the next step if it was the end of one. */
__weak __noinline int torch__end_step(struct torch_range *e)
{
	u32 len = torch_step_len;
	struct torch_loop *l;
	const u64 *name;

	if (!e || len > TORCH_STEP_NAME || bpf_strncmp(e->name, len, (const char *)torch_step_name))
		return 0;
	name = (const u64 *)(e->name + sizeof(u64));
	l = torch__loop(e->span.event.pid, name);
	if (!l)
		return 0;
	for (u32 i = 0; torch_step_by_class && i < TORCH_BOUNDARY; i++)
		if (l->name[i] != name[i])
			return 0;
	if (l->boundary) {
		if (!torch_scheduled || l->phase == STEP_ACTIVE)
			torch__emit_step(l, e->span.event.time);
		l->step++;
	}
	l->boundary = e->span.event.time;
	if (torch_scheduled)
		torch__begin_step(l, l->boundary);
	return 0;
}
