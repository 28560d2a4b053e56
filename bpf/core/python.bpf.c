// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The maps of the Python stack walker, and the start and end of processes with a CPython. Loaded only if a family
 * reads Python stacks.
 */
#include "python_learn.bpf.h"
#include "python_walk.bpf.h"

struct stack_nodes_map stack_nodes SEC(".maps");
u32 stack_last_frame = 0;
u32 stack_last_code = 0;
u32 stack_epoch = 0;

struct python_processes_map python_processes SEC(".maps");
struct python_files_map python_files SEC(".maps");
struct python_layouts_map python_layouts SEC(".maps");
struct python_threads_map python_threads SEC(".maps");
struct python_knowns_map python_knowns SEC(".maps");
struct python_nested_map python_nested SEC(".maps");
struct python_codes_map python_codes SEC(".maps");
struct python_stacks_map python_stacks SEC(".maps");

u32 python_last_id = 1;

/* A child is a copy of its parent; from here on each process has code objects of its own. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(core_python_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid;
	struct python_process *p, copy;

	if (from == to)
		return 0;
	p = bpf_map_lookup_elem(&python_processes, &from);
	if (!p)
		return 0;
	copy = *p;
	copy.id = __sync_fetch_and_add(&python_last_id, 2) + 2;
	if (bpf_map_update_elem(&python_processes, &to, &copy, BPF_ANY))
		loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
	return 0;
}

/*
 * At an exec the new program is mapped, and the worker may learn of the mappings, before sched_process_exec runs. The
 * rename comes earlier, so the old entry is removed there.
 */
SEC("tp_btf/task_rename")
int BPF_PROG(core_python_exec, struct task_struct *task, const char *comm)
{
	u32 tgid = task->tgid;

	if ((u32)task->pid == tgid && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		bpf_map_delete_elem(&python_processes, &tgid);
	return 0;
}

/*
 * The program is mapped by now, but has not run. A CPython in a shared library is found by python__known_here() at
 * its first event.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(core_python_run, struct task_struct *task)
{
	u32 tgid = task->tgid;

	if (!bpf_map_lookup_elem(&python_processes, &tgid))
		python__learn(BPF_CORE_READ(task, mm, start_code));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(core_python_exit, struct task_struct *task)
{
	u32 tgid = task->tgid;

	if (!task__live_threads(task))
		bpf_map_delete_elem(&python_processes, &tgid);
	return 0;
}
