/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds processes without a runtime that the worker is to follow like one with a runtime, so that a native service is
 * in the trace, at hardly any cost to the other processes: processes that use much CPU time, because the clock samples
 * them anyway, and processes of several threads that often wait, which an iterator finds once a second.
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

#define WAITS_MIN 2 /* voluntary switches of a thread since the iterator's last run, at most a second earlier */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32); /* thread */
	__type(value, u64); /* its voluntary switches at the iterator's last run */
} sample_waits SEC(".maps");

static __always_inline bool waits_often(struct task_struct *task)
{
	u64 now = task->nvcsw, *before;
	u32 tid = task->pid;
	bool often;

	before = bpf_map_lookup_elem(&sample_waits, &tid);
	if (!before) {
		bpf_map_update_elem(&sample_waits, &tid, &now, BPF_ANY);
		return false;
	}
	often = now - *before >= WAITS_MIN && now - *before <= BUSY_SWITCHES;
	*before = now;
	return often;
}

/* Threads of one process make each other wait. A process of one thread mostly waits for something to do. */
SEC("?iter/task")
int sample_waiters(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct raw_busy raw = {};

	if (!task || task->flags & (PF_KTHREAD | PF_EXITING) || BPF_CORE_READ(task, signal, nr_threads) < 2 ||
	    process__flags(task->tgid) & PROCESS_RUNTIME || is_sonde(task) || !waits_often(task))
		return 0;
	event__init(&raw.event, RAW_BUSY, 0, bpf_ktime_get_ns());
	raw.event.pid = task->tgid;
	iter__write(seq, &raw, sizeof(raw));
	return 0;
}
