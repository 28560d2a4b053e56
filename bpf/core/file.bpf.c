// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tables of file.bpf.h, and the search for the processes at the other ends of the pipes and connections that
 * threads used.
 */
#include "core/file.bpf.h"

struct files_map files SEC(".maps");
struct file_ends_map file_ends SEC(".maps");
struct file_rooms_map file_rooms SEC(".maps");
u32 file_last = 0;

#define TCP_LISTEN  10 /* include/net/tcp_states.h */
#define SOCK_STREAM 1 /* include/linux/net.h */

/* Returns the end's entry if its processes were requested and this one is not the process recorded last; else NULL. */
static __always_inline struct file_end *end_to_record(u64 end, u32 tgid)
{
	struct file_end *known = end ? bpf_map_lookup_elem(&file_ends, &end) : NULL;

	return known && known->tgid != tgid && known->n < FILE_END_PROCESSES ? known : NULL;
}

/*
 * Fills in the address and port at which a socket listens. Returns the number that identifies them; 0: the socket does
 * not listen. A UDP socket without a peer counts as listening.
 */
static __always_inline u64 describe_listener(struct syscall_peer *e, struct socket *socket, struct sock *sk, u16 family)
{
	e->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	e->type = BPF_CORE_READ(socket, type);
	if (!e->local_port || (e->type == SOCK_STREAM && BPF_CORE_READ(sk, __sk_common.skc_state) != TCP_LISTEN))
		return 0;
	e->net = socket__net(sk);
	if (family == AF_INET)
		e->local0 = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	else
		socket__v6(sk, true, &e->local0);
	return port__end(e->net, e->type, e->local_port);
}

/* Fills in the event for a socket, as a peer's end or a listener. Returns its entry; NULL: it was not requested. */
static __always_inline struct file_end *describe_peer(struct syscall_peer *e, struct file *file, u64 ino, u32 tgid)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family == AF_UNIX) {
		e->other_end = unix__end(ino);
		return end_to_record(e->other_end, tgid);
	}
	if (family != AF_INET && family != AF_INET6)
		return NULL;
	if (BPF_CORE_READ(sk, __sk_common.skc_dport)) {
		e->other_end = socket__end(sk, true);
		return end_to_record(e->other_end, tgid);
	}
	return end_to_record(describe_listener(e, socket, sk, family), tgid);
}

#define LOCKS_MAX 64 /* locks of a file that are looked at, of each of two kinds */

/* Does the process hold one of these locks, by this file or as a whole, while others wait for it? */
static __noinline bool holds_one(struct list_head *locks, u64 file, u64 files)
{
	bool is_core = bpf_core_type_exists(struct file_lock_core);
	u32 list = is_core ? bpf_core_field_offset(struct file_lock_core, flc_list) :
			     bpf_core_field_offset(struct file_lock___plain, fl_list);
	u32 blocked = is_core ? bpf_core_field_offset(struct file_lock_core, flc_blocked_requests) :
				bpf_core_field_offset(struct file_lock___plain, fl_blocked_requests);
	u32 owner = is_core ? bpf_core_field_offset(struct file_lock_core, flc_owner) :
			      bpf_core_field_offset(struct file_lock___plain, fl_owner);
	u64 at = (u64)locks, lock, waiter, by;

	for (u32 i = 0; i < LOCKS_MAX; i++) {
		if (bpf_probe_read_kernel(&at, sizeof(at), (const void *)at) || at == (u64)locks)
			return false;
		lock = at - list;
		if (bpf_probe_read_kernel(&waiter, sizeof(waiter), (const void *)(lock + blocked)) ||
		    bpf_probe_read_kernel(&by, sizeof(by), (const void *)(lock + owner)))
			return false;
		if (waiter != lock + blocked && (by == file || by == files))
			return true;
	}
	return false;
}

static __always_inline bool holds_lock(struct task_struct *task, struct file *file, struct inode *inode)
{
	struct file_lock_context *locks = BPF_CORE_READ(inode, i_flctx);
	u64 files = (u64)BPF_CORE_READ(task, files);

	return locks &&
	       (holds_one(&locks->flc_flock, (u64)file, files) || holds_one(&locks->flc_posix, (u64)file, files));
}

/* Runs once, when tracing stops, over all open files of the machine; each takes some 0.1 us. */
SEC("iter/task_file")
int core_file_peers(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct file *file = ctx->file;
	struct syscall_peer e = {};
	struct file_end *end;
	struct inode *inode;
	u32 tgid;
	u16 mode;

	if (!task || !file)
		return 0;
	tgid = task->tgid;
	inode = file->f_inode;
	mode = inode->i_mode & S_IFMT;
	if (mode == S_IFIFO) {
		e.other_end = pipe__end(inode->i_ino, inode->i_sb->s_dev, file->f_mode & FMODE_WRITE);
		end = end_to_record(e.other_end, tgid);
	} else if (mode == S_IFREG) {
		e.other_end = holds_lock(task, file, inode) ? lock__end(inode->i_ino, inode->i_sb->s_dev) : 0;
		end = end_to_record(e.other_end, tgid);
	} else {
		end = mode == S_IFSOCK ? describe_peer(&e, file, inode->i_ino, tgid) : NULL;
	}
	if (!end)
		return 0;
	e.event.time = bpf_ktime_get_ns();
	e.event.pid = e.event.tid = tgid;
	e.event.id = ID_syscall_peer;
	bpf_probe_read_kernel_str(e.comm, sizeof(e.comm), BPF_CORE_READ(task, group_leader, comm));
	/* if the reader's buffer is full, the kernel runs the program again for this file */
	if (iter__write(seq, &e, sizeof(e)))
		return 0;
	end->tgid = tgid;
	end->n++;
	return 0;
}
