/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes without a runtime that use much CPU time: the clock meets them anyway, and reports those that it meets
 * often, which the loader then follows like one with a runtime. So a native service is in the trace, at no cost to all
 * others.
 */
#pragma once

#include "core/sonde.bpf.h"
#include "sample.h"

#define BUSY_TICKS    4 /* within BUSY_WINDOW */
#define BUSY_WINDOW   1000000000ULL /* ns */
#define BUSY_SWITCHES 5000 /* of the thread in a second: following more of them would cost it too much */

struct sample_busy {
	u64 since; /* start of the window, ns */
	u64 switches; /* of thread `tid` at that time */
	u32 tid;
	u32 ticks;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* process */
	__type(value, struct sample_busy);
} sample_busy SEC(".maps");

/* sonde's own processes */
static __always_inline bool is_sonde(const struct task_struct *task)
{
	return task->comm[0] == 's' && task->comm[1] == 'o' && task->comm[2] == 'n' && task->comm[3] == 'd' &&
	       task->comm[4] == 'e';
}

static __always_inline void report_busy(struct task_struct *task, u64 now)
{
	struct raw_busy raw = {};

	event__init(&raw.event, RAW_BUSY, 0, now);
	emit(&raw, sizeof(raw));
}

/* The clock met a process that is not followed. */
static __always_inline void count_busy(struct task_struct *task, u64 now)
{
	struct sample_busy fresh = { .since = now, .switches = task->nvcsw, .tid = task->pid, .ticks = 1 }, *busy;
	u32 pid = task->tgid;

	if (filter_on || !task->pid || task->flags & (PF_KTHREAD | PF_EXITING) || is_sonde(task))
		return;
	busy = bpf_map_lookup_elem(&sample_busy, &pid);
	if (!busy || now - busy->since > BUSY_WINDOW) {
		bpf_map_update_elem(&sample_busy, &pid, &fresh, BPF_ANY);
		return;
	}
	if (++busy->ticks != BUSY_TICKS)
		return;
	if (busy->tid == (u32)task->pid &&
	    (task->nvcsw - busy->switches) * BUSY_WINDOW > BUSY_SWITCHES * (now - busy->since))
		return;
	report_busy(task, now);
}
