// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shared maps, the configuration, and the programs that every recording needs. */
#include "sonde.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct threads_map threads SEC(".maps");
struct rings_map rings SEC(".maps");
struct ring_bell_map ring_bell SEC(".maps");
struct recording_suspended_map recording_suspended SEC(".maps");
struct losses_map losses SEC(".maps");
struct probe_hits_map probe_hits SEC(".maps");

const volatile u32 span_mode = SPAN_ENTRY_ONLY;
const volatile bool no_args = false;
const volatile bool test_unreadable_code = false;
const volatile u64 ring_size = 8;
const volatile u64 ring_mark = 0;

/* Closes all open calls of a thread that ends or execs: none of them will return. */
static __always_inline void close_all(struct task_struct *task)
{
	struct thread *th = bpf_task_storage_get(&threads, task, 0, 0);
	u32 i;

	if (!th)
		return;
	for (i = 0; i < CALL_DEPTH; i++) {
		if (!th->depth)
			break;
		span__drop_top(th, EVENT_OPEN);
	}
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(core_exec, struct task_struct *task)
{
	close_all(bpf_get_current_task_btf());
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(core_exit_calls, struct task_struct *task)
{
	close_all(bpf_get_current_task_btf());
	return 0;
}

/* Set by core_clock. In a time namespace, user space can't read these clocks: clock_gettime adds an offset. */
u64 clock_monotonic = 0;
u64 clock_boottime = 0;

SEC("?syscall")
int core_clock(void *ctx)
{
	clock_monotonic = bpf_ktime_get_ns();
	clock_boottime = bpf_ktime_get_boot_ns();
	return 0;
}

SEC("iter/task")
int core_open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct open_call *c;
	struct event *e;
	struct thread *th;
	u32 i, size;

	if (!task)
		return 0;
	th = bpf_task_storage_get(&threads, task, 0, 0);
	if (!th)
		return 0;
	for (i = 0; i < CALL_DEPTH; i++) {
		if (i >= th->depth)
			break;
		c = &th->calls[i];
		size = c->size;
		if (size < sizeof(struct span))
			continue;
		KEEP_BOUND(size);
		if (size > CALL_MAX)
			continue;
		e = (struct event *)c->record;
		e->time = bpf_ktime_get_ns();
		e->flags |= EVENT_OPEN;
		iter__write(seq, c->record, size);
	}
	return 0;
}

#define VM_EXEC 4

#define USER_NAMESPACES_MAX 33 /* the kernel nests 32 of them below the first */

/*
 * The account that is responsible for a process: its user. In a user namespace that another user than root has made
 * all users are those of its maker (subuid(5)).
 */
static __always_inline u32 account_of(struct task_struct *task)
{
	struct user_namespace *ns = BPF_CORE_READ(task, cred, user_ns);
	u32 owner = 0;

	for (u32 i = 0; i < USER_NAMESPACES_MAX && BPF_CORE_READ(ns, level) > 0; i++) {
		owner = BPF_CORE_READ(ns, owner.val);
		ns = BPF_CORE_READ(ns, parent);
	}
	return owner ? owner : BPF_CORE_READ(task, cred, euid.val);
}

#define PATH_SIZE 4096

/* Only one process runs core_vmas at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, char[PATH_SIZE]);
} core_path SEC(".maps");

SEC("?iter/task_vma")
int core_vmas(struct bpf_iter__task_vma *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct vma_record r = {};
	struct file *file;
	u32 len, zero = 0;
	char *path = bpf_map_lookup_elem(&core_path, &zero);
	long n;

	if (!path || !task || !vma)
		return 0;
	/* once for each process: by its main thread or, if that has ended, by each other one */
	if (task->pid != task->tgid && BPF_CORE_READ(task, group_leader, mm))
		return 0;
	file = vma->vm_file;
	if (!file || !(vma->vm_flags & VM_EXEC))
		return 0;
	r.start = vma->vm_start;
	r.end = vma->vm_end;
	r.offset = vma->vm_pgoff << 12;
	r.dev = file->f_inode->i_sb->s_dev;
	r.ino = file->f_inode->i_ino;
	r.generation = file->f_inode->i_generation;
	r.magic = (u32)file->f_inode->i_sb->s_magic;
	r.pid = task->tgid;
	r.uid = account_of(task);
	bpf_probe_read_kernel_str(r.comm, sizeof(r.comm), task->comm);
	n = bpf_d_path(&file->f_path, path, PATH_SIZE);
	r.path_len = n > 0 && n <= PATH_SIZE ? n : 0;
	bpf_seq_write(seq, &r, sizeof(r));
	len = r.path_len;
	if (!len)
		return 0;
	KEEP_BOUND(len);
	if (len <= PATH_SIZE)
		bpf_seq_write(seq, path, len);
	return 0;
}
