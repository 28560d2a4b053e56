// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/ended.bpf.h"
#include "core/process_number.bpf.h"
#include "core/sonde.bpf.h"
#include "proc.h"

static __always_inline void event__of(struct event *e, struct task_struct *task, u16 id)
{
	e->time = bpf_ktime_get_ns();
	e->pid = task->tgid;
	e->tid = task->pid;
	e->id = id;
}

/*
 * Writes threads that exist already: proc.c runs it when tracing begins, and for a process that a filter selects
 * later.
 */
SEC("?iter/task")
int proc_snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct proc_task e = {};

	if (!task || !process__passed_on(task->tgid))
		return 0;
	event__of(&e.event, task, ID_proc_task);
	e.start_time = task->start_time;
	e.ppid = BPF_CORE_READ(task, real_parent, tgid);
	e.ns_pid = task__ns_number(BPF_CORE_READ(task, group_leader));
	e.ns_tid = task__ns_number(task);
	bpf_probe_read_kernel_str(e.comm, sizeof(e.comm), task->comm);
	iter__write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(proc_forked, struct task_struct *parent, struct task_struct *child)
{
	struct proc_fork e = {};

	if (!process__is_armed(parent->tgid))
		return 0;
	event__of(&e.event, parent, ID_proc_fork);
	e.child_pid = child->tgid;
	e.child_tid = child->pid;
	e.child_ns_pid = task__ns_number(BPF_CORE_READ(child, group_leader));
	e.child_ns_tid = task__ns_number(child);
	bpf_probe_read_kernel_str(e.comm, sizeof(e.comm), child->comm);
	emit(&e, sizeof(e));
	return 0;
}

#define PATH_ROOM 1024

/* With a path the record is too large for the stack. */
struct exec_room {
	u8 record[sizeof(struct proc_exec) + PATH_ROOM] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exec_room);
} exec_rooms SEC(".maps");

SEC("tp_btf/sched_process_exec")
int BPF_PROG(proc_execed, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	struct proc_exec *e;
	u32 key = 0;
	long len;

	if (!process__is_armed(task->tgid))
		return 0;
	e = bpf_map_lookup_elem(&exec_rooms, &key);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	event__of(&e->event, task, ID_proc_exec);
	bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), task->comm);
	if (old_pid != task->pid)
		e->old_tid = old_pid;
	len = bpf_probe_read_kernel_str(e->path, PATH_ROOM,
					no_args ? (const char *)BPF_CORE_READ(bprm, file, f_path.dentry, d_name.name) :
						  BPF_CORE_READ(bprm, filename));
	/* without its NUL */
	len = len > 0 && len <= PATH_ROOM ? len - 1 : 0;
	barrier_var(len);
	emit(e, __builtin_offsetof(struct proc_exec, path) + (len & (PATH_ROOM - 1)));
	return 0;
}

/* Runs before core_exit, which removes the process from the set. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(proc_exited, struct task_struct *task)
{
	struct proc_exit e = {};
	bool late = process__has_ended(task);

	if (!late && !process__is_armed(task->tgid))
		return 0;
	event__of(&e.event, task, ID_proc_exit);
	/* split as wait() does: include/uapi */
	e.code = (task->exit_code >> 8) & 0xff;
	e.signal = task->exit_code & 0x7f;
	e.core = !!(task->exit_code & 0x80);
	e.group_dead = !late && !task__live_threads(task);
	emit(&e, sizeof(e));
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(proc_renamed, struct task_struct *task, const char *comm)
{
	struct proc_rename e = {};

	if (!process__is_armed(task->tgid))
		return 0;
	event__of(&e.event, task, ID_proc_rename);
	bpf_probe_read_kernel_str(e.comm, sizeof(e.comm), comm);
	emit(&e, sizeof(e));
	return 0;
}
