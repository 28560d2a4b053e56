/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which file a descriptor refers to, read in the thread that uses it, where it hardly ever changes meanwhile. Each file is
 * reported once and has an id.
 */
#ifndef SONDE_SYSCALL_FILE_BPF_H
#define SONDE_SYSCALL_FILE_BPF_H

#include "core/sonde.bpf.h"
#include "syscall.h"

/* include/uapi/linux/stat.h, include/linux/socket.h */
#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFIFO	 0010000
#define AF_UNIX	 1
#define AF_INET	 2
#define AF_INET6 10

#define FILE_PATH   256 /* room for a path, a power of two */
#define NAME_ROOM   64 /* of one component */
#define PATH_LEVELS 16

/* Names change and inode numbers come back; a socket gets its peer later. */
struct file_key {
	u64 dentry;
	u64 ino;
	u64 peer; /* address and ports, mixed */
	u32 generation;
	u32 tgid; /* each process's trace can be read without the others' */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
} syscall_files SEC(".maps");

struct file_room {
	struct dentry *dentry; /* where on the way up, and in which mount */
	struct mount *mount;
	u32 pos; /* in path: what is there already begins here */
	/* a struct syscall_file */
	u8 event[sizeof(struct syscall_file)] __attribute__((aligned(8)));
	/* the path is built from its end; then one component may stick out */
	char path[FILE_PATH + NAME_ROOM];
	u8 record[sizeof(struct syscall_file) + FILE_PATH] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct file_room);
} syscall_file_rooms SEC(".maps");

u32 syscall_last_file = 0;

/* Puts a name in front of what is at pos; returns the new pos. */
static __always_inline u32 put_name(struct file_room *room, u32 pos, struct dentry *dentry, bool slash)
{
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	u32 len = BPF_CORE_READ(dentry, d_name.len);

	if (len >= NAME_ROOM)
		len = NAME_ROOM - 1;
	if (pos < len + 1)
		return pos;
	pos -= len;
	bpf_probe_read_kernel(room->path + (pos & (FILE_PATH - 1)), len & (NAME_ROOM - 1), name);
	if (slash) {
		pos--;
		room->path[pos & (FILE_PATH - 1)] = '/';
	}
	return pos;
}

/*
 * One step up from a file to the root; false at the end. Not static: so the verifier
 * checks it once, and not at every step of every program that calls it.
 */
__noinline int syscall_step_up(void)
{
	struct dentry *dentry, *parent;
	struct mount *mount, *up;
	struct file_room *room;
	u32 key = 0;

	room = bpf_map_lookup_elem(&syscall_file_rooms, &key);
	if (!room)
		return false;
	dentry = room->dentry;
	mount = room->mount;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry != BPF_CORE_READ(mount, mnt.mnt_root) && dentry != parent) {
		room->pos = put_name(room, room->pos, dentry, true);
		room->dentry = parent;
		return true;
	}
	up = BPF_CORE_READ(mount, mnt_parent);
	if (up == mount || !up) {
		/* what is mounted nowhere has a name of its own, such as [eventfd] */
		if (room->pos == FILE_PATH)
			room->pos = put_name(room, FILE_PATH, dentry, false);
		return false;
	}
	room->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
	room->mount = up;
	return true;
}

/* Returns where in room->path it begins. */
static __noinline u32 build_path(struct file_room *room, struct file *file)
{
	if (!room || !file)
		return FILE_PATH;
	room->dentry = BPF_CORE_READ(file, f_path.dentry);
	room->mount = (void *)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	room->pos = FILE_PATH;
	for (u32 i = 0; i < PATH_LEVELS && syscall_step_up(); i++)
		if (no_args)
			break; /* the name is there, the folders are not */
	return room->pos;
}

/* A UNIX socket's name is often its peer's alone: the server's. */
static __always_inline u32 unix_name(struct file_room *room, struct sock *sk)
{
	struct unix_address *address = BPF_CORE_READ((struct unix_sock *)sk, addr);
	struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	int len;

	if (!address && peer)
		address = BPF_CORE_READ((struct unix_sock *)peer, addr);
	len = address ? BPF_CORE_READ(address, len) : 0;
	len -= sizeof(u16);
	if (len <= 0 || len > 108 || no_args)
		return FILE_PATH;
	bpf_probe_read_kernel(room->path + FILE_PATH - 128, len & 127,
			      (void *)address + bpf_core_field_offset(struct unix_address, name) +
				      bpf_core_field_offset(struct sockaddr_un, sun_path));
	/* an abstract name begins with a NUL, which people write as @; others end with one */
	if (!room->path[FILE_PATH - 128])
		room->path[FILE_PATH - 128] = '@';
	else
		len--;
	return FILE_PATH - 128 + len;
}

/* Returns where a UNIX socket's name ends, which begins at FILE_PATH - 128; 0: no name */
static __noinline int describe_socket(struct file_room *room, struct file *file)
{
	struct socket *socket;
	struct sock *sk;
	struct syscall_file *e;

	if (!room || !file)
		return 0;
	e = (struct syscall_file *)room->event;
	e->kind = SYSCALL_FILE_SOCKET;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	e->type = BPF_CORE_READ(socket, type);
	e->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (e->family == AF_UNIX)
		return unix_name(room, sk);
	if (e->family == AF_INET) {
		e->local0 = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		e->peer0 = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else if (e->family == AF_INET6) {
		bpf_core_read(&e->local0, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(&e->peer0, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		return 0;
	}
	e->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	e->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	return 0;
}

static __noinline int emit_file(struct file *file, u32 id, u32 tgid)
{
	struct syscall_file *e;
	struct file_room *room;
	struct inode *inode;
	u32 key = 0, pos, end = FILE_PATH, len;
	u16 mode;

	room = bpf_map_lookup_elem(&syscall_file_rooms, &key);
	if (!room || !file)
		return 0;
	e = (struct syscall_file *)room->event;
	__builtin_memset(e, 0, sizeof(struct syscall_file));
	event__init(&e->event, ID_syscall_file, 0, bpf_ktime_get_ns());
	/* an iterator reports it in the loader's context */
	if (e->event.pid != tgid)
		e->event.pid = e->event.tid = tgid;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	e->file = id;
	e->ino = BPF_CORE_READ(inode, i_ino);
	e->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	if (mode == S_IFSOCK) {
		pos = FILE_PATH - 128;
		end = describe_socket(room, file);
	} else {
		pos = build_path(room, file);
		e->kind = mode == S_IFIFO			   ? SYSCALL_FILE_PIPE :
			  room->path[pos & (FILE_PATH - 1)] == '/' ? SYSCALL_FILE_PATH :
								     SYSCALL_FILE_ANON;
	}
	len = end > pos ? end - pos : 0;
	__builtin_memcpy(room->record, room->event, sizeof(struct syscall_file));
	if (len > FILE_PATH - 1)
		len = FILE_PATH - 1;
	barrier_var(len);
	len &= FILE_PATH - 1;
	barrier_var(pos);
	/* what follows the path in its room is part of the same map value */
	bpf_probe_read_kernel(room->record + __builtin_offsetof(struct syscall_file, path), len,
			      room->path + (pos & (FILE_PATH - 1)));
	emit(room->record, __builtin_offsetof(struct syscall_file, path) + len);
	return 0;
}

static __always_inline u64 peer_of(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u64 half[2] = {};

	if (family == AF_UNIX)
		return (u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (family == AF_INET6)
		bpf_core_read(half, sizeof(half), &sk->__sk_common.skc_v6_daddr);
	return (half[0] ^ half[1]) + ((u64)BPF_CORE_READ(sk, __sk_common.skc_daddr) << 32) +
	       ((u64)BPF_CORE_READ(sk, __sk_common.skc_dport) << 16) + BPF_CORE_READ(sk, __sk_common.skc_num);
}

/* The file that a thread used last: most calls are on the same one again. */
struct file_cache {
	struct file_key key;
	u32 id;
	u32 unused;
};

/* The id of a file, which is reported if it is new */
static __noinline u32 file__id(struct file *file, struct file_cache *cache)
{
	u32 id, *known;

	if (!file || !cache)
		return 0;
	known = bpf_map_lookup_elem(&syscall_files, &cache->key);
	if (known)
		return *known;
	id = __sync_fetch_and_add(&syscall_last_file, 1) + 1;
	if (bpf_map_update_elem(&syscall_files, &cache->key, &id, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_syscall_file), LOSS_MAP_FULL, bpf_ktime_get_ns());
	emit_file(file, id, cache->key.tgid);
	return id;
}

/* The id of an open file; 0: no such descriptor */
static __noinline u32 file__of_fd(struct task_struct *task, u32 fd, struct file_cache *cache)
{
	struct file **table, *file = NULL;
	struct file_key key = {};
	struct fdtable *fdt;
	struct inode *inode;

	if (!task || !cache)
		return 0;
	fdt = task->files->fdt;
	if (fd >= fdt->max_fds)
		return 0;
	table = fdt->fd;
	if (bpf_probe_read_kernel(&file, sizeof(file), &table[fd]) || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	key.dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	key.ino = BPF_CORE_READ(inode, i_ino);
	key.generation = BPF_CORE_READ(inode, i_generation);
	key.tgid = task->tgid;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK)
		key.peer = peer_of(file);
	if (cache->id && cache->key.ino == key.ino && cache->key.dentry == key.dentry &&
	    cache->key.generation == key.generation && cache->key.peer == key.peer && cache->key.tgid == key.tgid)
		return cache->id;
	cache->key = key;
	cache->id = file__id(file, cache);
	return cache->id;
}

#endif
