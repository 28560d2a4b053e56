// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The set of processes that the filters select now. Tasks that fork, rename themselves or move between cgroups update
 * the set in their own context, so that a probe needs one lookup in a hash map.
 *
 * Several tasks may change the flags of one process at the same time: the process renames itself, another process
 * moves it, the worker adds a flag. So flags are changed by compare-and-exchange, and only in this file; the worker
 * calls core_set to change them.
 */
#include "sonde.bpf.h"
#include "ended.bpf.h"

struct processes_map processes SEC(".maps");
struct ended_map ended SEC(".maps");
struct comm_globs_map comm_globs SEC(".maps");
struct filter_cgroups_map filter_cgroups SEC(".maps");

const volatile bool filter_on = false;
const volatile u32 record_need = 0;
const volatile u16 kind_need[FAMILY_MAX][KINDS_MAX] = {};
const volatile u32 filter_need = 0;
const volatile u32 n_comm_globs = 0;
const volatile u32 n_filter_cgroups = 0;
const volatile u32 filter_hierarchy = 0;
const volatile u32 filter_uid = 0;

/*
 * It changes when a process loses PROCESS_SELECTED, PROCESS_RUNTIME or PROCESS_CAPTURED, but not when it ends. Each
 * thread caches the version under which its process was last found to be recorded, or to be followed.
 */
u32 processes_version = 1;

/*
 * Attempts to change a flag while other tasks change it. All of these changes are rare, so a few attempts are enough.
 */
#define CHANGE_TRIES 8

static __always_inline u32 with_selected(u32 flags)
{
	if ((flags & filter_need) == filter_need)
		return flags | PROCESS_SELECTED;
	return flags & ~PROCESS_SELECTED;
}

/* Returns the flags before the change; *now gets the flags after it. */
static __always_inline u32 process__change(u32 tgid, u32 set, u32 clear, u32 *now)
{
	u32 *flags = bpf_map_lookup_elem(&processes, &tgid), old = 0, seen;

	*now = with_selected(set);
	if (!flags) {
		if (!bpf_map_update_elem(&processes, &tgid, now, BPF_NOEXIST))
			return 0;
		flags = bpf_map_lookup_elem(&processes, &tgid);
	}
	if (!flags) {
		*now = 0;
		loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
		return 0;
	}
	for (int i = 0; i < CHANGE_TRIES; i++) {
		old = *(volatile u32 *)flags;
		*now = with_selected((old & ~clear) | set);
		if (*now == old)
			return old;
		seen = __sync_val_compare_and_swap(flags, old, *now);
		if (seen != old)
			continue;
		if (old & ~*now & (PROCESS_SELECTED | PROCESS_RUNTIME))
			__sync_fetch_and_add(&processes_version, 1);
		return old;
	}
	/* other tasks changed the entry at each attempt; rare, so it is counted with full maps */
	loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
	*now = old;
	return old;
}

/* No other flag depends on this one, so it needs no compare-and-exchange. */
__weak __noinline int process__set_captured(u32 tgid, u32 captured)
{
	u32 *flags = bpf_map_lookup_elem(&processes, &tgid), none = 0;

	if (!flags && captured && !filter_on) {
		bpf_map_update_elem(&processes, &tgid, &none, BPF_NOEXIST);
		flags = bpf_map_lookup_elem(&processes, &tgid);
	}
	if (!flags) {
		if (captured)
			loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
		return 0;
	}
	if (captured) {
		__sync_fetch_and_or(flags, PROCESS_CAPTURED);
	} else {
		__sync_fetch_and_and(flags, ~PROCESS_CAPTURED);
		__sync_fetch_and_add(&processes_version, 1);
	}
	return 0;
}

/* Does one of the --comm globs match? */
static __always_inline bool comm__is_selected(const char *comm)
{
	for (u32 i = 0; i < COMM_GLOBS; i++) {
		struct glob *g = bpf_map_lookup_elem(&comm_globs, &i);
		u64 state = GLOB_BEGIN;

		if (i >= n_comm_globs || !g)
			break;
		for (u32 at = 0; at < 16; at++) {
			u8 c = comm[at];

			if (!c)
				break;
			state = glob__step(g, state, c);
		}
		if (glob__ends(g, state))
			return true;
	}
	return false;
}

/* Is this cgroup, or one of its ancestors, named by --cgroup? */
static __always_inline bool cgroup__is_selected(struct cgroup *cgroup)
{
	int level = BPF_CORE_READ(cgroup, level);

	for (int up = 0; up < CGROUP_LEVELS && up <= level; up++) {
		struct cgroup *above = NULL;
		u64 id;

		bpf_core_read(&above, sizeof(above),
			      (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors) + up * sizeof(above));
		id = BPF_CORE_READ(above, kn, id);
		for (u32 i = 0; i < FILTER_CGROUPS; i++) {
			u64 *named = bpf_map_lookup_elem(&filter_cgroups, &i);

			if (i >= n_filter_cgroups || !named)
				break;
			if (id == *named)
				return true;
		}
	}
	return false;
}

static __always_inline u32 comm__flag(struct task_struct *task)
{
	char comm[16];

	if (!(filter_need & PROCESS_COMM))
		return 0;
	bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
	return comm__is_selected(comm) ? PROCESS_COMM : 0;
}

/* Covers the default hierarchy (cgroup v2). The worker reads the members of cgroups of other hierarchies. */
static __always_inline u32 cgroup__flag(struct task_struct *task)
{
	if (!(filter_need & PROCESS_CGROUP) || filter_hierarchy || !bpf_core_field_exists(task->cgroups))
		return 0;
	return cgroup__is_selected(BPF_CORE_READ(task, cgroups, dfl_cgrp)) ? PROCESS_CGROUP : 0;
}

/* A setuid program has different real and effective users, and counts as a process of neither. */
static __always_inline u32 user__flag(struct task_struct *task)
{
	if (!(filter_need & PROCESS_USER))
		return 0;
	return BPF_CORE_READ(task, cred, uid.val) == filter_uid && BPF_CORE_READ(task, cred, euid.val) == filter_uid ?
		       PROCESS_USER :
		       0;
}

/* Reports that a process is recorded from now on, or is no longer recorded. */
static __always_inline void report_member(struct task_struct *task, const char *comm, u32 before, u32 now, bool exec)
{
	struct meta_member e = {};

	if (!filter_on || !((before ^ now) & PROCESS_SELECTED))
		return;
	e.event.time = bpf_ktime_get_ns();
	e.event.pid = task->tgid;
	e.event.tid = task->tgid;
	e.event.id = ID_meta_member;
	e.member = !!(now & PROCESS_SELECTED);
	e.exec = exec;
	bpf_probe_read_kernel_str(e.comm, sizeof(e.comm), comm);
	emit(&e, sizeof(e));
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(core_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid, flags;

	if (from == to)
		return 0;
	/*
	 * PROCESS_RETURNS is not inherited: a link on returns for one pid does not cover its children. Nor is
	 * PROCESS_COMM: the child has the name of the thread that forked it, which may differ from its process's. A
	 * capture range is of one process.
	 */
	flags = process__flags(from) & ~(PROCESS_RETURNS | PROCESS_SELECTED | PROCESS_COMM | PROCESS_USER |
					 PROCESS_PASSED_ON | PROCESS_CAPTURED);
	if (!filter_hierarchy)
		flags &= ~PROCESS_CGROUP;
	flags = with_selected(flags | comm__flag(child) | cgroup__flag(child) | user__flag(child));
	if (!filter_on)
		flags &= ~PROCESS_SELECTED;
	if (!flags)
		bpf_map_delete_elem(&processes, &to); /* the entry of an earlier process with this pid */
	else if (bpf_map_update_elem(&processes, &to, &flags, BPF_ANY))
		loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
	return 0;
}

/*
 * A process has the name of its first thread. The rename is used and not sched_process_exec, because the new
 * program's files are mapped before sched_process_exec runs, and the worker may have seen them by then. The rename
 * comes before both.
 */
SEC("tp_btf/task_rename")
int BPF_PROG(core_rename, struct task_struct *task, const char *comm)
{
	u32 set = 0, clear = 0, before, now;
	bool exec = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	char name[16] = "";

	if (task->pid != task->tgid)
		return 0;
	if (filter_need & PROCESS_COMM) {
		bpf_probe_read_kernel_str(name, sizeof(name), comm);
		if (comm__is_selected(name))
			set = PROCESS_COMM;
		else
			clear = PROCESS_COMM;
	}
	if (exec)
		clear |= PROCESS_RUNTIME;
	/* An entry, even without flags, shows core_seed that the name it has read is outdated. */
	if (!(filter_need & PROCESS_COMM) && !process__flags(task->tgid))
		return 0;
	before = process__change(task->tgid, set, clear, &now);
	report_member(task, comm, before, now, exec);
	return 0;
}

/* One thread alone can be moved (cgroup v1). A process counts as a member of the cgroup of its first thread. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(core_moved, struct cgroup *to, const char *path, struct task_struct *task, bool threadgroup)
{
	u32 before, now;
	bool in;

	if (!(filter_need & PROCESS_CGROUP) || (u32)BPF_CORE_READ(to, root, hierarchy_id) != filter_hierarchy)
		return 0;
	if (!threadgroup && task->pid != task->tgid)
		return 0;
	in = cgroup__is_selected(to);
	before = process__change(task->tgid, in ? PROCESS_CGROUP : 0, in ? 0 : PROCESS_CGROUP, &now);
	report_member(task, task->comm, before, now, false);
	return 0;
}

static __always_inline void follow_user(struct task_struct *task, bool exec)
{
	u32 flag = user__flag(task), before, now;

	if ((process__flags(task->tgid) & PROCESS_USER) == flag)
		return;
	before = process__change(task->tgid, flag, flag ^ PROCESS_USER, &now);
	report_member(task, task->comm, before, now, exec);
}

/* A setuid program has its new user from here on. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(core_exec_user, struct task_struct *task)
{
	if (filter_need & PROCESS_USER)
		follow_user(task, true);
	return 0;
}

/* Finds processes that change their user without an exec, such as a server that starts as root. Run once a second. */
SEC("?iter/task")
int core_users(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	/* skip a process that has ended: its entry was removed and must not come back */
	if (task && task->pid == task->tgid && task__live_threads(task))
		follow_user(task, false);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(core_exit, struct task_struct *task)
{
	u64 started = task__process_start(task);
	u32 tgid = task->tgid;

	if (task__live_threads(task))
		return 0;
	if (process__is_armed(tgid))
		bpf_map_update_elem(&ended, &tgid, &started, BPF_ANY);
	else if (!process__has_ended(task))
		bpf_map_delete_elem(&ended, &tgid); /* the entry of an earlier process with this pid */
	bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

/*
 * Adds the processes that exist when tracing begins. It runs after the programs above are attached, and an entry that
 * one of them has made is newer than what is read here.
 */
SEC("?iter/task")
int core_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid, flags;

	/* nothing would remove the entry of a process that has ended, which its parent has not waited for yet */
	if (!task || task->pid != task->tgid || !task__live_threads(task))
		return 0;
	tgid = task->tgid;
	flags = with_selected(comm__flag(task) | cgroup__flag(task) | user__flag(task));
	if (flags)
		bpf_map_update_elem(&processes, &tgid, &flags, BPF_NOEXIST);
	return 0;
}

/* Changes flags for the worker; flags that it does not name stay unchanged. */
SEC("?syscall")
int core_set(struct process_change *c)
{
	u32 now;

	c->before = process__change(c->pid, c->flags, c->clear, &now);
	c->now = now;
	return 0;
}
