/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file that a descriptor refers to. The programs read it in the thread that uses the descriptor, during the call: a
 * descriptor hardly ever gets another file in that time. Each file is reported once per process (event syscall_file)
 * and gets an id. Families syscall and sample share the table.
 *
 * Layouts: struct file, fdtable, dentry, mount, socket, sock, unix_sock and pid of the kernel's headers (vmlinux/ says
 * which header each is from), relocated by CO-RE.
 */
#pragma once

#include "core/file.h"
#include "core/sonde.bpf.h"

/* include/uapi/linux/stat.h, include/linux/socket.h; include/linux/fs.h */
#define S_IFMT	    0170000
#define S_IFSOCK    0140000
#define S_IFREG	    0100000
#define S_IFIFO	    0010000
#define AF_UNIX	    1
#define AF_INET	    2
#define AF_INET6    10
#define FMODE_WRITE 2

#define FILE_PATH    256 /* bytes for a path, a power of two */
#define NAME_ROOM    64 /* bytes of one component */
#define UNIX_NAME_AT (FILE_PATH - 128) /* where a UNIX socket's name begins in the path; it has at most 108 bytes */
#define PATH_LEVELS  16

/* Identifies a file: names change and inode numbers are reused; a socket gets its peer later. */
struct file_key {
	u64 dentry;
	u64 ino;
	u64 peer; /* for a socket, a hash of its addresses and ports; for a pipe, which end it is */
	u32 generation;
	u32 tgid; /* part of the key, so that the events of each process can be read without those of others */
};

struct files_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
};

/* How many processes core_file_peers has recorded at one end of a pipe or connection. */
struct file_end {
	u32 tgid; /* the process recorded last */
	u32 n;
};

#define FILE_END_PROCESSES 16 /* recorded per end; an end can have more, as children inherit descriptors */

/* The ends whose processes core_file_peers records. Key: struct syscall_file.other_end. */
struct file_ends_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct file_end);
};

struct file_room {
	struct dentry *dentry; /* the component that was reached on the way to the root, and its mount */
	struct mount *mount;
	u32 pos; /* start of the finished part in path */
	/* a struct syscall_file */
	u8 event[sizeof(struct syscall_file)] __attribute__((aligned(8)));
	/* the path is built backwards, from its last component; a component may extend beyond FILE_PATH */
	char path[FILE_PATH + NAME_ROOM];
	u8 record[sizeof(struct syscall_file) + FILE_PATH] __attribute__((aligned(8)));
};

struct file_rooms_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct file_room);
};

/* file.bpf.c */
extern struct files_map files SEC(".maps");
extern struct file_ends_map file_ends SEC(".maps");
extern struct file_rooms_map file_rooms SEC(".maps");
extern u32 file_last; /* the id that was assigned last */

/* Writes a name into room->path so that it ends before pos; returns its position. */
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
 * One step up from a file to the root; false at the end. A global function, so that the verifier checks it once, and
 * not at every step of every program that calls it.
 */
__weak __noinline int file__step_up(void)
{
	struct dentry *dentry, *parent;
	struct mount *mount, *up;
	struct file_room *room;
	u32 key = 0;

	room = bpf_map_lookup_elem(&file_rooms, &key);
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
		/* a file without a mount is named by the kernel, such as [eventfd] */
		if (room->pos == FILE_PATH)
			room->pos = put_name(room, FILE_PATH, dentry, false);
		return false;
	}
	room->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
	room->mount = up;
	return true;
}

/* Requests that the processes at this end of a pipe or connection are recorded when tracing ends. */
static __noinline int file__request_end(u64 end)
{
	struct file_end none = {};

	bpf_map_update_elem(&file_ends, &end, &none, BPF_NOEXIST);
	return 0;
}

/* Returns the start of the path in room->path. */
static __noinline u32 build_path(struct file_room *room, struct file *file)
{
	if (!room || !file)
		return FILE_PATH;
	room->dentry = BPF_CORE_READ(file, f_path.dentry);
	room->mount = (void *)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	room->pos = FILE_PATH;
	for (u32 i = 0; i < PATH_LEVELS && file__step_up(); i++)
		if (no_args)
			break; /* with --no-args only the file's own name is recorded, without folders */
	return room->pos;
}

/*
 * Copies the name of a UNIX socket to UNIX_NAME_AT in room->path; returns its end. Often only its peer, the server,
 * has a name.
 */
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
	bpf_probe_read_kernel(room->path + UNIX_NAME_AT, len & 127,
			      (void *)address + bpf_core_field_offset(struct unix_address, name) +
				      bpf_core_field_offset(struct sockaddr_un, sun_path));
	/* an abstract name begins with a NUL, which is usually written as @; other names end with one */
	if (!room->path[UNIX_NAME_AT])
		room->path[UNIX_NAME_AT] = '@';
	else
		len--;
	return UNIX_NAME_AT + len;
}

/*
 * The number that identifies an end of a pipe or connection has its kind in the upper two bits. Files with locks share
 * that of connections, which is as good as random.
 */
#define END_BITS       (~0ULL >> 2)
#define END_CONNECTION (0ULL << 62)
#define END_PIPE       (1ULL << 62)
#define END_UNIX       (2ULL << 62)
#define END_PORT       (3ULL << 62)

/* Reads the own address of an IPv6 socket or its peer's. The kernel may have been built without IPv6. */
static __always_inline void socket__v6(struct sock *sk, bool local, u64 half[2])
{
	half[0] = half[1] = 0;
	if (!bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		return;
	if (local)
		bpf_core_read(half, 16, &sk->__sk_common.skc_v6_rcv_saddr);
	else
		bpf_core_read(half, 16, &sk->__sk_common.skc_v6_daddr);
}

/* A hash of one side of a connection: the socket's own address and port (local), or the peer's. */
static __always_inline u64 socket__side(struct sock *sk, bool local)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u64 half[2] = {}, port;

	if (local)
		port = BPF_CORE_READ(sk, __sk_common.skc_num);
	else
		port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (family == AF_INET6) {
		socket__v6(sk, local, half);
		/* an IPv4 address in an IPv6 socket, ::ffff:1.2.3.4 */
		if (!half[0] && (u32)half[1] == 0xffff0000)
			half[1] >>= 32;
	} else {
		half[1] = local ? BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) :
				  BPF_CORE_READ(sk, __sk_common.skc_daddr);
	}
	return (half[0] * 0x9e3779b97f4a7c15ULL ^ half[1]) * 0xff51afd7ed558ccdULL + port;
}

static __always_inline u32 socket__net(struct sock *sk)
{
	if (!bpf_core_field_exists(sk->__sk_common.skc_net.net))
		return 0;
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* Is one of the socket's IPv4 addresses in 127.0.0.0/8? */
static __always_inline bool socket__is_loopback(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET &&
	       ((u8)BPF_CORE_READ(sk, __sk_common.skc_daddr) == 127 ||
		(u8)BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) == 127);
}

/* Is the peer on this machine: are both addresses equal, or is one of them a loopback address? */
static __always_inline bool socket__is_local(struct sock *sk)
{
	u64 local = socket__side(sk, true) - BPF_CORE_READ(sk, __sk_common.skc_num);
	u64 peer = socket__side(sk, false) - __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));

	return local == peer || socket__is_loopback(sk);
}

/*
 * Identifies an end of the connection of `sk`: its own end or the peer's. If both ends are at addresses of this
 * machine they are in the same network namespace, whose number is part of the hash, because other namespaces may use
 * the same addresses. For a connection between containers the ends are in two namespaces.
 */
static __always_inline u64 socket__end(struct sock *sk, bool own)
{
	u64 local = socket__side(sk, true), peer = socket__side(sk, false), net = 0;
	u64 pair = own ? local * 0xc4ceb9fe1a85ec53ULL ^ peer : peer * 0xc4ceb9fe1a85ec53ULL ^ local;

	if (local - BPF_CORE_READ(sk, __sk_common.skc_num) ==
	    peer - __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport)))
		net = socket__net(sk);
	return END_CONNECTION | ((pair ^ net * 0x9e3779b97f4a7c15ULL) & END_BITS);
}

static __always_inline u64 unix__end(u64 ino)
{
	return END_UNIX | ino;
}

/* Identifies the other end of a socket's connection; 0: the socket is not connected. */
static __always_inline u64 socket__other_end(struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u64 ino;

	if (family == AF_UNIX) {
		ino = BPF_CORE_READ((struct unix_sock *)sk, peer, sk_socket, file, f_inode, i_ino);
		return ino ? unix__end(ino) : 0;
	}
	if ((family != AF_INET && family != AF_INET6) || !BPF_CORE_READ(sk, __sk_common.skc_dport))
		return 0;
	return socket__end(sk, false);
}

/*
 * Identifies an end of a pipe: the pipe has one inode and two ends. Named pipes on different file systems can have the
 * same inode number.
 */
static __always_inline u64 pipe__end(u64 ino, u32 dev, bool write)
{
	return END_PIPE | (((ino << 1 | write) ^ (u64)dev << 40) & END_BITS);
}

/* Identifies a file whose locks processes wait for. */
static __always_inline u64 lock__end(u64 ino, u32 dev)
{
	return END_CONNECTION | ((ino ^ (u64)dev << 40) * 0x9e3779b97f4a7c15ULL & END_BITS);
}

/* Identifies a port at which a process of this machine listens with a socket of this type. */
static __always_inline u64 port__end(u32 net, u16 type, u16 port)
{
	return END_PORT | (u64)(type & 0xf) << 48 | (u64)net << 16 | port;
}

/* Fills the event of a socket. Returns the end of a UNIX socket's name, which begins at UNIX_NAME_AT; 0: no name. */
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
	e->other_end = socket__other_end(sk);
	if (e->family == AF_UNIX) {
		/* the process that listened, connected or created the pair, as SO_PEERCRED returns it */
		e->peer_pid = BPF_CORE_READ(sk, sk_peer_pid, numbers[0].nr);
		return unix_name(room, sk);
	}
	if (e->family == AF_INET) {
		e->local0 = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		e->peer0 = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else if (e->family == AF_INET6) {
		socket__v6(sk, true, &e->local0);
		socket__v6(sk, false, &e->peer0);
	} else {
		return 0;
	}
	e->net = socket__net(sk);
	e->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	e->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (e->peer_port && socket__is_local(sk))
		file__request_end(port__end(e->net, e->type, e->peer_port));
	return 0;
}

static __noinline int emit_file(struct file *file, u32 id, u32 tgid)
{
	struct syscall_file *e;
	struct file_room *room;
	struct inode *inode;
	u32 key = 0, pos, end = FILE_PATH, len;
	u16 mode;

	room = bpf_map_lookup_elem(&file_rooms, &key);
	if (!room || !file)
		return 0;
	e = (struct syscall_file *)room->event;
	__builtin_memset(e, 0, sizeof(struct syscall_file));
	event__init(&e->event, ID_syscall_file, 0, bpf_ktime_get_ns());
	/* in an iterator the current task is not the file's process, but the one that reads the iterator */
	if (e->event.pid != tgid)
		e->event.pid = e->event.tid = tgid;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	e->file = id;
	e->ino = BPF_CORE_READ(inode, i_ino);
	e->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	if (mode == S_IFSOCK) {
		pos = UNIX_NAME_AT;
		end = describe_socket(room, file);
	} else {
		pos = build_path(room, file);
		if (mode == S_IFIFO)
			e->other_end = pipe__end(e->ino, e->dev, !(BPF_CORE_READ(file, f_mode) & FMODE_WRITE));
		else if (mode == S_IFREG && BPF_CORE_READ(inode, i_flctx))
			e->other_end = lock__end(e->ino, e->dev);
		e->kind = mode == S_IFIFO			   ? SYSCALL_FILE_PIPE :
			  room->path[pos & (FILE_PATH - 1)] == '/' ? SYSCALL_FILE_PATH :
								     SYSCALL_FILE_ANON;
	}
	if (e->other_end)
		file__request_end(e->other_end);
	len = end > pos ? end - pos : 0;
	__builtin_memcpy(room->record, room->event, sizeof(struct syscall_file));
	if (len > FILE_PATH - 1)
		len = FILE_PATH - 1;
	barrier_var(len);
	len &= FILE_PATH - 1;
	barrier_var(pos);
	/* reads beyond the end of the path, but within the same map value */
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
		socket__v6(sk, false, half);
	return (half[0] ^ half[1]) + ((u64)BPF_CORE_READ(sk, __sk_common.skc_daddr) << 32) +
	       ((u64)BPF_CORE_READ(sk, __sk_common.skc_dport) << 16) + BPF_CORE_READ(sk, __sk_common.skc_num);
}

/* The file that a thread used last: most calls use the same file as the call before. */
struct file_cache {
	struct file_key key;
	u32 id;
	u32 unused;
};

/* Returns the id of a file. A new file gets an id and is reported. */
static __noinline u32 file__id(struct file *file, struct file_cache *cache)
{
	struct file_key key;
	u32 id, *known;

	if (!file || !cache)
		return 0;
	/* the verifier of 6.1 accepts no map key in memory that a function got by a pointer */
	key = cache->key;
	known = bpf_map_lookup_elem(&files, &key);
	if (known)
		return *known;
	id = __sync_fetch_and_add(&file_last, 1) + 1;
	if (bpf_map_update_elem(&files, &key, &id, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_syscall_file), LOSS_MAP_FULL, bpf_ktime_get_ns());
	emit_file(file, id, key.tgid);
	return id;
}

/* Returns the id of the file that a descriptor refers to; 0: there is no such descriptor. */
static __noinline __attribute__((unused)) u32 file__of_fd(struct task_struct *task, u32 fd, struct file_cache *cache)
{
	struct file **table, *file = NULL;
	struct file_key key = {};
	struct fdtable *fdt;
	struct inode *inode;

	if (!task || !cache)
		return 0;
	fdt = BPF_CORE_READ(task, files, fdt);
	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return 0;
	table = BPF_CORE_READ(fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &table[fd]) || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	key.dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	key.ino = BPF_CORE_READ(inode, i_ino);
	key.generation = BPF_CORE_READ(inode, i_generation);
	key.tgid = task->tgid;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK)
		key.peer = peer_of(file);
	else if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFIFO)
		key.peer = BPF_CORE_READ(file, f_mode) & FMODE_WRITE;
	if (cache->id && cache->key.ino == key.ino && cache->key.dentry == key.dentry &&
	    cache->key.generation == key.generation && cache->key.peer == key.peer && cache->key.tgid == key.tgid)
		return cache->id;
	cache->key = key;
	cache->id = file__id(file, cache);
	return cache->id;
}
