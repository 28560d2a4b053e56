// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CPU quotas of cgroups. What cpu.stat says of a cgroup (nr_periods, nr_throttled,
 * throttled_time) is read where the kernel keeps it, from the followed processes'
 * own task groups: that needs no mount, no path and no version of cgroups, and
 * works for a container's too. v1 and v2 share these counters.
 *
 * They are read once a second, when a process is made and when it ends. Each level
 * that has a quota is looked at, as any of them may hold the process back.
 */
#include "core/sonde.bpf.h"
#include "sched.h"

extern const volatile bool option_sched_all;

#define PF_KTHREAD 0x00200000

#define MAX_GROUPS 8192 /* of processes, each with its cgroups */
#define LEVELS	   8 /* of cgroups, upwards */
#define PATH_ROOM  512 /* of a cgroup's path; longer ones are cut */
#define NAME_ROOM  256
#define PATH_DEPTH 16

/* RUNTIME_INF of kernel/sched/sched.h */
#define NO_QUOTA (~0ULL)

struct throttle_key {
	u64 group;
	u32 pid;
	u32 unused;
};

struct throttle_seen {
	u64 since, throttled;
	u32 periods, throttled_periods;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GROUPS);
	__type(key, struct throttle_key);
	__type(value, struct throttle_seen);
} sched_throttles SEC(".maps");

struct throttle_room {
	u8 record[sizeof(struct sched_throttle) + PATH_ROOM + NAME_ROOM] __attribute__((aligned(8)));
	struct kernfs_node *chain[PATH_DEPTH];
};

/* An iterator may be preempted by a thread that forks: a room each. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct throttle_room);
} sched_throttle_room SEC(".maps");

static __always_inline bool wanted(struct task_struct *task)
{
	/* as in sched.bpf.c: what a filter names needs no runtime */
	u32 need = filter_on ? PROCESS_SELECTED : option_sched_all ? 0 : PROCESS_RUNTIME;

	if (task->flags & PF_KTHREAD)
		return false;
	return (process__flags(task->tgid) & need) == need;
}

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *node)
{
	struct kernfs_node___rcu *rcu = (void *)node;

	return bpf_core_field_exists(rcu->__parent) ? BPF_CORE_READ(rcu, __parent) : BPF_CORE_READ(node, parent);
}

/* Leaf to root is noted first, then the names root to leaf. Bytes of the path. */
static __noinline u32 write_path(struct throttle_room *r, struct kernfs_node *node)
{
	struct sched_throttle *e;
	struct kernfs_node *parent;
	u32 pos = 0, n, i;
	long len;

	if (!r)
		return 0;
	e = (struct sched_throttle *)r->record;
	for (n = 0; n < PATH_DEPTH && node; n++) {
		parent = parent_of(node);
		/* the root has no name */
		if (!parent)
			break;
		r->chain[n] = node;
		node = parent;
	}
	if (!n)
		e->cgroup[pos++] = '/';
	for (i = 0; i < PATH_DEPTH; i++) {
		if (i >= n || pos >= PATH_ROOM - 1)
			break;
		e->cgroup[pos & (PATH_ROOM - 1)] = '/';
		pos++;
		node = r->chain[(n - 1 - i) & (PATH_DEPTH - 1)];
		len = bpf_probe_read_kernel_str(&e->cgroup[pos & (PATH_ROOM - 1)], NAME_ROOM,
						BPF_CORE_READ(node, name));
		if (len > 1 && len <= NAME_ROOM)
			pos += len - 1;
	}
	return pos;
}

/* meta NULL: into the ring */
static __always_inline void tell(struct task_struct *task, struct task_group *group, struct throttle_seen *last,
				 const struct throttle_seen *now, struct bpf_iter_meta *meta)
{
	struct throttle_room *r;
	struct sched_throttle *e;
	u32 which = meta != NULL, len;

	r = bpf_map_lookup_elem(&sched_throttle_room, &which);
	if (!r)
		return;
	e = (struct sched_throttle *)r->record;
	event__init(&e->event, ID_sched_throttle, 0, now->since);
	e->event.pid = e->event.tid = task->tgid;
	e->since = last->since;
	e->throttled = now->throttled - last->throttled;
	e->quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
	e->period = BPF_CORE_READ(group, cfs_bandwidth.period);
	e->periods = (u32)(now->periods - last->periods);
	e->throttled_periods = (u32)(now->throttled_periods - last->throttled_periods);
	len = write_path(r, BPF_CORE_READ(group, css.cgroup, kn));
	barrier_var(len);
	if (len > PATH_ROOM)
		len = PATH_ROOM;
	if (meta)
		iter__write(meta, e, sizeof(*e) + len);
	else
		emit(e, sizeof(*e) + len);
}

static __always_inline void look_at(struct task_struct *task, struct task_group *group, bool first,
				    struct bpf_iter_meta *meta)
{
	struct throttle_key key = { .group = (u64)group, .pid = task->tgid };
	struct throttle_seen now = {
		.since = bpf_ktime_get_ns(),
		.throttled = BPF_CORE_READ(group, cfs_bandwidth.throttled_time),
		.periods = BPF_CORE_READ(group, cfs_bandwidth.nr_periods),
		.throttled_periods = BPF_CORE_READ(group, cfs_bandwidth.nr_throttled),
	};
	struct throttle_seen *last = bpf_map_lookup_elem(&sched_throttles, &key);

	if (last && last->periods == now.periods && last->throttled == now.throttled)
		return;
	if (last)
		tell(task, group, last, &now, meta);
	if (last || first)
		bpf_map_update_elem(&sched_throttles, &key, &now, BPF_ANY);
}

/* first: what was not read before is read from here on */
static __always_inline void look_at_all(struct task_struct *task, bool first, struct bpf_iter_meta *meta)
{
	struct task_group *group = NULL;

	if (!bpf_core_field_exists(group->cfs_bandwidth.nr_throttled) || !bpf_core_field_exists(task->sched_task_group))
		return;
	group = task->sched_task_group;
	for (int i = 0; i < LEVELS && group; i++) {
		if (BPF_CORE_READ(group, cfs_bandwidth.quota) != NO_QUOTA)
			look_at(task, group, first, meta);
		group = BPF_CORE_READ(group, parent);
	}
}

/* Threads may be in cgroups of their own: all are looked at, each cgroup of a process is told once. */
SEC("iter/task")
int sched_throttled(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task && wanted(task))
		look_at_all(task, true, ctx->meta);
	return 0;
}

/* The first reading of a new process; one that is moved to a cgroup later has it at the next second. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_throttle_forked, struct task_struct *parent, struct task_struct *child)
{
	if (child->pid == child->tgid && wanted(parent))
		look_at_all(child, true, NULL);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_throttle_exit, struct task_struct *task)
{
	/* a process leaves the set with its last thread, which may be before this one comes here */
	if (task->pid == task->tgid && (wanted(task) || !task->signal->live.counter))
		look_at_all(task, false, NULL);
	return 0;
}
