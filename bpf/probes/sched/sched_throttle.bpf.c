// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is read once a second: limits of cgroups (CPU quotas, limits of memory), and the CPU time of threads that are
 * not followed. The figures of cpu.stat (nr_periods, nr_throttled, throttled_time) and the figure `max` of
 * memory.events.local are read from the kernel's own data, the groups of followed processes: that needs no mount, path
 * or version of cgroups, and works for a container's cgroups, too. v1 and v2 share these counters.
 *
 * Quotas are read also when a process is created and when its last thread ends. Each level with a limit is read, as any
 * of them may hold the process back.
 */
#include "core/path.bpf.h"
#include "sched.h"

extern const volatile bool option_sched_all;

#define MAX_GROUPS 8192 /* pairs of a process and one of its cgroups */
#define LEVELS	   8 /* of cgroups, from that of the process upwards */

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

/* Two buffers, as an iterator may be preempted by a thread that forks. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct path_room);
} sched_throttle_buffers SEC(".maps");

enum reading {
	READING_FIRST, /* or one of each second */
	READING_LAST, /* of a process that ends */
};

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *node)
{
	struct kernfs_node___rcu *rcu = (void *)node;

	return bpf_core_field_exists(rcu->__parent) ? BPF_CORE_READ(rcu, __parent) : BPF_CORE_READ(node, parent);
}

/* Notes a component and returns its parent; the root has no name. */
static __always_inline struct kernfs_node *node__note(struct path_room *r, struct kernfs_node *node)
{
	struct kernfs_node *parent = parent_of(node);

	return parent && path__note(r, BPF_CORE_READ(node, name)) ? parent : NULL;
}

/* Writes the path of a cgroup behind the record. */
static __always_inline u32 write_path(struct path_room *r, struct kernfs_node *node)
{
	path__begin(r);
	for (u32 i = 0; i < PATH_DEPTH && node; i++)
		node = node__note(r, node);
	if (r->components)
		return path__write(r);
	r->path[0] = '/';
	return 1;
}

/* Fills the record in the buffer except for its path. */
static __always_inline void fill(struct sched_throttle *e, u32 pid, struct task_group *group,
				 const struct throttle_seen *last, const struct throttle_seen *now)
{
	event__init(&e->event, ID_sched_throttle, 0, now->since);
	e->event.pid = e->event.tid = pid;
	e->since = last->since;
	e->throttled = now->throttled - last->throttled;
	e->quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
	e->period = BPF_CORE_READ(group, cfs_bandwidth.period);
	e->periods = (u32)(now->periods - last->periods);
	e->throttled_periods = (u32)(now->throttled_periods - last->throttled_periods);
}

/*
 * Reads the counters of a cgroup (a struct task_group) for a process. buffer: which of the two gets the record. Returns
 * the bytes of the record to be emitted; 0: none. This is a global function, and takes the address of the cgroup as a
 * u64, so that the verifier checks it once and not for each level of cgroups and each state in which it is called.
 */
__weak __noinline u32 sched__read(u64 address, u32 pid, enum reading which, u32 buffer)
{
	struct task_group *group = (void *)address;
	struct throttle_key key = { .group = address, .pid = pid };
	struct throttle_seen now = {}, *last;
	struct path_room *r;
	bool changed;
	u32 len = 0;

	if (BPF_CORE_READ(group, cfs_bandwidth.quota) == NO_QUOTA)
		return 0;
	r = bpf_map_lookup_elem(&sched_throttle_buffers, &buffer);
	if (!r)
		return 0;
	now.since = bpf_ktime_get_ns();
	now.throttled = BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
	now.periods = BPF_CORE_READ(group, cfs_bandwidth.nr_periods);
	now.throttled_periods = BPF_CORE_READ(group, cfs_bandwidth.nr_throttled);
	last = bpf_map_lookup_elem(&sched_throttles, &key);
	/* a new cgroup has the address of one that was removed */
	if (last && (now.periods < last->periods || now.throttled < last->throttled))
		last = NULL;
	changed = last && (last->periods != now.periods || last->throttled != now.throttled);
	if (changed) {
		fill(path__record(r, struct sched_throttle), pid, group, last, &now);
		len = sizeof(struct sched_throttle) + write_path(r, BPF_CORE_READ(group, css.cgroup, kn));
	}
	if (which == READING_LAST)
		bpf_map_delete_elem(&sched_throttles, &key); /* the pid may be reused */
	else if (changed || !last)
		bpf_map_update_elem(&sched_throttles, &key, &now, BPF_ANY);
	return len;
}

/* The counter of a cgroup (a struct mem_cgroup) when it was last read */
struct memory_seen {
	u64 since, reached;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GROUPS);
	__type(key, struct throttle_key);
	__type(value, struct memory_seen);
} sched_memories SEC(".maps");

/* PAGE_COUNTER_MAX, "no limit", is LONG_MAX / PAGE_SIZE. */
#define NO_LIMIT  (1ULL << 46)
#define PAGE_SIZE 4096

/* As sched__read(), for a limit of memory. The record is in the iterator's buffer. */
__weak __noinline u32 sched__read_memory(u64 address, u32 pid)
{
	struct mem_cgroup *group = (void *)address;
	struct throttle_key key = { .group = address, .pid = pid };
	struct memory_seen now = {}, *last;
	u32 buffer = 1, len = 0;
	struct sched_memory *e;
	struct path_room *r;
	u64 limit = BPF_CORE_READ(group, memory.max);

	r = bpf_map_lookup_elem(&sched_throttle_buffers, &buffer);
	if (!r || limit >= NO_LIMIT)
		return 0;
	now.since = bpf_ktime_get_ns();
	now.reached = (u64)BPF_CORE_READ(group, memory_events_local[MEMCG_MAX].counter);
	last = bpf_map_lookup_elem(&sched_memories, &key);
	/* a new cgroup has the address of one that was removed, or a new process the number of one that has ended */
	if (last && now.reached > last->reached) {
		e = path__record(r, struct sched_memory);
		event__init(&e->event, ID_sched_memory, 0, now.since);
		e->event.pid = e->event.tid = pid;
		e->since = last->since;
		e->limit = limit * PAGE_SIZE;
		e->reached = now.reached - last->reached;
		len = sizeof(*e) + write_path(r, BPF_CORE_READ(group, css.cgroup, kn));
	}
	bpf_map_update_elem(&sched_memories, &key, &now, BPF_ANY);
	return len;
}

/* Emits the record in the buffer. seq NULL: into the ring. */
static __always_inline void send(u32 buffer, u32 len, struct seq_file *seq)
{
	struct path_room *r = bpf_map_lookup_elem(&sched_throttle_buffers, &buffer);

	barrier_var(len);
	if (!r || len > sizeof(struct sched_throttle) + PATH_ROOM)
		return;
	if (seq)
		iter__write(seq, path__record(r, struct sched_throttle), len);
	else
		emit(path__record(r, struct sched_throttle), len);
}

/* Writes the record in the iterator's buffer. */
static __always_inline void send_memory(u32 len, struct seq_file *seq)
{
	u32 buffer = 1;
	struct path_room *r = bpf_map_lookup_elem(&sched_throttle_buffers, &buffer);

	barrier_var(len);
	if (r && len <= sizeof(struct sched_memory) + PATH_ROOM)
		iter__write(seq, path__record(r, struct sched_memory), len);
}

__weak __noinline int sched__emit(u32 buffer, u32 len)
{
	send(buffer, len, NULL);
	return 0;
}

static __always_inline void read_all(struct task_struct *task, enum reading which, struct seq_file *seq)
{
	/* an iterator may be preempted by a thread that forks */
	u32 buffer = seq != NULL, len;
	struct task_group *group = NULL;

	if (!bpf_core_field_exists(group->cfs_bandwidth.nr_throttled) || !bpf_core_field_exists(task->sched_task_group))
		return;
	group = BPF_CORE_READ(task, sched_task_group);
	for (int i = 0; i < LEVELS && group; i++) {
		len = sched__read((u64)group, task->tgid, which, buffer);
		if (len && seq)
			send(buffer, len, seq);
		else if (len)
			sched__emit(buffer, len);
		group = BPF_CORE_READ(group, parent);
	}
}

/* Reads the limits of memory of the cgroup of a process, and of those above it. */
static __always_inline void read_memory(struct task_struct *task, struct seq_file *seq)
{
	struct cgroup_subsys_state *state = NULL;
	struct mem_cgroup *group = NULL;
	struct css_set *set;
	u32 len, i;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) ||
	    !bpf_core_field_exists(group->memory_events_local))
		return;
	set = BPF_CORE_READ(task, cgroups);
	i = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	bpf_probe_read_kernel(&state, sizeof(state),
			      (void *)set + bpf_core_field_offset(set->subsys) + i * sizeof(state));
	for (i = 0; i < LEVELS && state; i++) {
		/* the state is the first member */
		len = sched__read_memory((u64)state, task->tgid);
		if (len)
			send_memory(len, seq);
		state = BPF_CORE_READ(state, parent);
	}
}

/* The CPU time of a thread that is not followed when it was last read */
struct other_seen {
	u64 since, ran;
};

#define MAX_OTHERS   16384
#define OTHER_MIN_NS 10000000

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_OTHERS);
	__type(key, u32);
	__type(value, struct other_seen);
} sched_others SEC(".maps");

/* When threads that are not followed were read for the first time: a thread that began later ran only since then. */
static u64 others_since;

/* Fills a record with the time for which the thread ran since it was last read. false: that is little, or not known. */
static __always_inline bool fill_other(struct sched_other *e, struct task_struct *task)
{
	struct other_seen now = { .since = bpf_ktime_get_ns(), .ran = task->se.sum_exec_runtime };
	struct other_seen began = { .since = task->start_time }, *last;
	u32 tid = task->pid;

	if (!others_since)
		others_since = now.since;
	last = bpf_map_lookup_elem(&sched_others, &tid);
	/* a new thread may have the number of one that has ended */
	if (!last || last->ran > now.ran || last->since < began.since)
		last = began.since >= others_since ? &began : &now;
	event__init(&e->event, ID_sched_other, 0, now.since);
	e->event.pid = e->event.tid = 0;
	e->other_pid = task->tgid;
	e->other_tid = tid;
	e->since = last->since;
	e->ran = now.ran - last->ran;
	bpf_map_update_elem(&sched_others, &tid, &now, BPF_ANY);
	if (e->ran < OTHER_MIN_NS)
		return false;
	BPF_CORE_READ_INTO(&e->comm, task, group_leader, comm);
	return true;
}

/* The threads of a process may be in different cgroups: all are read, and each cgroup is recorded once per process. */
SEC("iter/task")
int sched_throttled(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sched_other other = {};

	if (!task)
		return 0;
	if (!user_task__followed(task, option_sched_all)) {
		if (fill_other(&other, task))
			iter__write(ctx->meta->seq, &other, sizeof(other));
		return 0;
	}
	read_all(task, READING_FIRST, ctx->meta->seq);
	if (task->pid == task->tgid)
		read_memory(task, ctx->meta->seq);
	return 0;
}

/* The first reading of a new process; one that is moved to another cgroup later is read within a second. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_throttle_forked, struct task_struct *parent, struct task_struct *child)
{
	if (child->pid == child->tgid && user_task__followed(parent, option_sched_all))
		read_all(child, READING_FIRST, NULL);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_throttle_exit, struct task_struct *task)
{
	struct sched_other other = {};

	if (!user_task__followed(task, option_sched_all) && fill_other(&other, task))
		emit(&other, sizeof(other));
	/* the process may have left the set already; of one that was not in it nothing was read before */
	if (!task__live_threads(task))
		read_all(task, READING_LAST, NULL);
	return 0;
}
