/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the disk family's objects share: whether a thread is followed, and the file that a page or system call refers
 * to, with its name.
 */
#pragma once

#include "core/path.bpf.h"
#include "disk.h"

#define MAX_FILES 65536

struct file_key {
	u64 dev, ino;
};

/* Files whose name is in the trace already. */
struct disk_named_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_FILES);
	__type(key, struct file_key);
	__type(value, u8);
};

struct disk_path_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct path_room);
};

extern struct disk_named_map disk_named SEC(".maps");
extern struct disk_path_map disk_paths SEC(".maps");
extern const volatile bool option_disk_all;

/* Fills the key of a file, and returns where the file is from. The key of a block device has the device's number. */
static __always_inline u32 inode__key(struct inode *inode, struct file_key *key, u32 from)
{
	u32 rdev = BPF_CORE_READ(inode, i_rdev);

	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	if (!rdev || from != DISK_FILE_PAGE_CACHE)
		return from;
	key->dev = rdev;
	return DISK_FILE_METADATA;
}

/*
 * The file behind the descriptor that is the first argument of the current system call, if that call reads or writes
 * through a descriptor (numbers of x86-64). In faults and interrupts the call number is -1.
 */
static __always_inline struct inode *call__inode(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct file *file = NULL, **files;
	u32 fd;

	if (!regs || task->flags & PF_KTHREAD || task__in_32bit_call(task))
		return NULL;
	switch (regs->orig_ax) {
	case 0: /* read */
	case 1: /* write */
	case 17: /* pread64 */
	case 18: /* pwrite64 */
	case 19: /* readv */
	case 20: /* writev */
	case 74: /* fsync */
	case 75: /* fdatasync */
	case 77: /* ftruncate */
	case 187: /* readahead */
	case 221: /* fadvise64 */
	case 277: /* sync_file_range */
	case 285: /* fallocate */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
		break;
	default:
		return NULL;
	}
	fd = regs->di;
	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds))
		return NULL;
	files = BPF_CORE_READ(task, files, fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return NULL;
	return BPF_CORE_READ(file, f_inode);
}

static __always_inline bool call__writes(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 call = regs && !task__in_32bit_call(task) ? regs->orig_ax : -1ULL;

	return call == 1 || call == 18 || call == 20 || call == 296 || call == 328;
}

static __always_inline struct dentry *inode__dentry(struct inode *inode)
{
	struct hlist_node *node = BPF_CORE_READ(inode, i_dentry.first);

	if (!node)
		return NULL;
	if (bpf_core_field_exists(((struct dentry___direct *)0)->d_alias))
		return (void *)node - bpf_core_field_offset(struct dentry___direct, d_alias);
	return (void *)node - bpf_core_field_offset(struct dentry, d_u.d_alias);
}

/* Stores the address of a component's name and returns the component's parent. */
static __always_inline struct dentry *dentry__note(struct path_room *r, struct dentry *d)
{
	struct dentry *parent = BPF_CORE_READ(d, d_parent);

	if (parent == d || (no_args && r->components) || !path__note(r, BPF_CORE_READ(d, d_name.name)))
		return NULL;
	return parent;
}

/*
 * Emits the file's name, once per file: components are noted from leaf to root and written from root to leaf. A
 * global function with the inode as a number, so that the verifier checks it once per program and not for each state
 * in which it is called.
 */
__weak __noinline int disk__emit_file(u64 inode, u64 dev, u64 ino)
{
	struct file_key key = { dev, ino };
	struct disk_file *e;
	struct path_room *r;
	struct dentry *d;
	u32 zero = 0;
	u8 one = 1;

	if (!inode || !ino || bpf_map_lookup_elem(&disk_named, &key))
		return 0;
	r = bpf_map_lookup_elem(&disk_paths, &zero);
	if (!r || bpf_map_update_elem(&disk_named, &key, &one, BPF_ANY))
		return 0;
	path__begin(r);
	d = inode__dentry((struct inode *)inode);
	for (u32 i = 0; i < PATH_DEPTH && d; i++)
		d = dentry__note(r, d);
	e = path__record(r, struct disk_file);
	event__init(&e->event, ID_disk_file, 0, bpf_ktime_get_ns());
	e->dev = dev;
	e->ino = ino;
	emit(e, sizeof(*e) + path__write(r));
	return 0;
}
