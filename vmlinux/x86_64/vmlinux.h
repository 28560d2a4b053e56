/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that sonde's BPF programs read: only the fields in use,
 * relocated at load time against the running kernel's BTF (CO-RE), so their
 * order and offsets here mean nothing. Source: Linux 6.1 to 6.18 headers, named
 * at each type.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false = 0, true = 1 };
typedef int pid_t;
typedef __u32 dev_t;
typedef unsigned long size_t;
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_F_USER_STACK = 256,
};

struct bpf_map;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* arch/x86/include/asm/ptrace.h */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* include/linux/types.h, kdev_t.h, fs.h, path.h, dcache.h, mount.h, fs/mount.h */
struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
};

/* include/linux/list.h, types.h */
struct hlist_node {
	struct hlist_node *next;
};

struct list_head {
	struct list_head *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
	unsigned short i_mode;
	dev_t i_rdev;
	struct hlist_head i_dentry;
	struct file_lock_context *i_flctx;
};

/* include/linux/filelock.h, before 6.3 include/linux/fs.h */
struct file_lock_context {
	struct list_head flc_flock, flc_posix;
};

/* since 6.9 */
struct file_lock_core {
	struct list_head flc_list, flc_blocked_requests;
	void *flc_owner;
};

/* before 6.9 */
struct file_lock___plain {
	struct list_head fl_list, fl_blocked_requests;
	void *fl_owner;
};

/* include/linux/dcache.h, mount.h, fs/mount.h */
struct qstr {
	u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* of newer kernels, seen in 7.3 */
struct dentry___direct {
	struct hlist_node d_alias;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
	unsigned int f_mode;
};

/* include/linux/fdtable.h */
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* include/linux/net.h, in6.h, include/net/sock.h, inet_sock.h, af_unix.h, uapi/linux/un.h */
struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	unsigned long skc_flags;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct pid *sk_peer_pid;
	struct socket *sk_socket;
};

struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};

struct sockaddr_un {
	u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

/* include/linux/fs.h, mm_types.h, page-flags.h; a page's flags are its first word */
struct address_space {
	struct inode *host;
};

struct page {
	struct address_space *mapping;
	unsigned long compound_head;
};

/* of newer kernels, seen in 7.3; of a tail page the head's address or, in its upper half all ones, a mask for the tail's own address */
struct page___info {
	unsigned long compound_info;
};

/* to 6.13, and from 6.14 */
struct folio {
	struct address_space *mapping;
	unsigned int _folio_nr_pages;
};

struct folio___v614 {
	unsigned int _nr_pages;
};

enum pageflags {
	PG_locked,
	PG_head,
	PG_writeback,
};

/* include/linux/blk_types.h, bvec.h, blk-mq.h, blkdev.h */
enum req_flag_bits {
	__REQ_SYNC,
	__REQ_META,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_RAHEAD,
};

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
};

struct bio_vec {
	struct page *bv_page;
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct request_queue {
	struct gendisk *disk;
};

/* include/linux/blk-mq.h */
enum mq_rq_state {
	MQ_RQ_IDLE = 0,
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	enum mq_rq_state state;
};

/* include/linux/mm_types.h */
struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

/* include/linux/pid.h, pid_namespace.h */
struct pid_namespace {
	unsigned int level;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* arch/x86/include/asm/processor.h */
struct thread_struct {
	unsigned long fsbase;
};

/* include/linux/types.h, sched/signal.h */
typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
	int nr_threads;
};

/* arch/x86/include/asm/thread_info.h */
struct thread_info {
	u32 status;
	u32 cpu;
};

/* kernel/sched/sched.h */
struct rq {
	u64 clock;
};

struct cfs_rq {
	struct rq *rq;
};

/* include/linux/sched.h */
struct sched_info {
	u64 run_delay, last_arrival, last_queued;
};

struct sched_entity {
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

/* include/linux/kernfs.h, cgroup-defs.h */
struct kernfs_node {
	struct kernfs_node *parent;
	const char *name;
	u64 id;
};

/* since 6.15 */
struct kernfs_node___rcu {
	struct kernfs_node *__parent;
};

struct cgroup_root {
	int hierarchy_id; /* 0: the default one, cgroup v2 */
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	struct cgroup *ancestors[1];
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

enum cgroup_subsys_id { memory_cgrp_id };

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

/* include/linux/page_counter.h, include/linux/memcontrol.h */
struct page_counter {
	unsigned long max;
};

typedef struct {
	s64 counter;
} atomic_long_t;

enum memcg_memory_event { MEMCG_MAX = 2 };

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
	atomic_long_t memory_events_local[3];
};

/* kernel/sched/sched.h */
struct cfs_bandwidth {
	s64 period;
	u64 quota;
	int nr_periods;
	int nr_throttled;
	u64 throttled_time;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};

/* include/linux/task_io_accounting.h */
struct task_io_accounting {
	u64 read_bytes, write_bytes;
};

/* include/net/inet_sock.h, include/linux/tcp.h, skbuff.h */
struct inet_sock {
	__be16 inet_sport;
};

enum sock_flags {
	SOCK_DONE,
};

/* include/net/inet_connection_sock.h */
struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u8 icsk_pending;
};

struct tcp_sock {
	u64 bytes_sent, bytes_retrans, bytes_received;
	u32 total_retrans;
	u32 srtt_us;
};

struct sk_buff {
	unsigned int len;
};

/* include/linux/time64.h, time_namespace.h, nsproxy.h */
struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct timens_offsets {
	struct timespec64 monotonic;
};

struct time_namespace {
	struct timens_offsets offsets;
};

struct nsproxy {
	struct time_namespace *time_ns;
};

/* include/linux/cred.h, include/linux/uidgid_types.h */
typedef struct {
	u32 val;
} kuid_t;

/* include/linux/user_namespace.h */
struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the first one */
	kuid_t owner;
};

struct cred {
	kuid_t uid;
	kuid_t euid;
	struct user_namespace *user_ns;
};

struct task_struct {
	struct thread_info thread_info;
	struct bpf_local_storage *bpf_storage;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int on_cpu; /* int, or u8 (seen in 7.3): libbpf adapts the width of unsigned loads alone */
	unsigned int __state;
	int pid;
	int tgid;
	int exit_code;
	int prio;
	unsigned int flags;
	unsigned int ptrace; /* not 0: `parent` traces it */
	unsigned long jobctl;
	int nr_cpus_allowed;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	char comm[16];
	u64 start_time;
	u64 start_boottime;
	struct task_struct *real_parent, *parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	const struct cred *cred;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct task_group *sched_task_group;
	struct mm_struct *mm;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	unsigned long nvcsw;
	unsigned long min_flt, maj_flt;
	struct task_io_accounting ioac;
	unsigned long sas_ss_sp; /* the stack that signal handlers have asked for */
	size_t sas_ss_size;
	struct thread_struct thread;
};

struct mm_struct {
	unsigned long start_code, start_stack;
	unsigned long arg_start, arg_end;
	struct file *exe_file;
};

/* include/linux/binfmts.h */
struct linux_binprm {
	const char *filename;
	struct file *file;
};

/* include/linux/bpf.h, kernel/bpf/task_iter.c: what iterators get */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

#pragma clang attribute pop

/* include/uapi/linux/bpf_perf_event.h: not relocated, the verifier rewrites it */
struct bpf_perf_event_data {
	struct pt_regs regs;
	u64 sample_period;
	u64 addr;
};
