// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/osrt_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/*
 * A descriptor's file is recorded once per pid, also if several processes have the pid in turn. Numbers of files are
 * unique in the trace.
 */
struct number_key {
	u32 pid, file; /* pid: the kernel's number, not an id */
};

/* A file's name in output, cut to this length; files of equal name count as one. */
struct file_name {
	char text[OSRT_FILE_NAME];
};

/* The process at the other end of a pipe or connection, or that listens at a local port */
struct peer_process {
	u32 pid;
	char name[17];
};

/* The address at which a process listens */
struct listener {
	u64 low, high; /* address; 0: all addresses */
	u32 net;
	u16 port, type;
};

struct osrt_files {
	const struct names *process_names;
	struct map ends; /* u64 -> struct peer_process */
	struct map listeners; /* struct listener -> struct peer_process */
	struct map numbers; /* struct number_key -> struct osrt_file */
	struct map names; /* struct file_name -> u32, its index plus one */
};

/* Writes "127.0.0.1:80" or "[::1]:80". */
static void address(char *buf, size_t size, u16 family, u64 low, u64 high, u16 port)
{
	u64 halves[2] = { low, high };
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(family, halves, text, sizeof(text)))
		*text = '\0';
	snprintf(buf, size, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

static char *describe_socket(const struct view *v, const char *path, u32 len)
{
	u16 family = (u16)view__get(v, "family"), type = (u16)view__get(v, "type");
	u16 port = (u16)view__get(v, "local_port"), peer_port = (u16)view__get(v, "peer_port");
	char local[96], peer[96], *text = NULL;
	int err;

	if (family == AF_UNIX)
		err = asprintf(&text, "unix %.*s", len ? (int)len : 11, len ? path : "(unnamed)");
	else if (family != AF_INET && family != AF_INET6)
		err = asprintf(&text, "socket of address family %u", family);
	else {
		address(local, sizeof(local), family, (u64)view__get(v, "local0"), (u64)view__get(v, "local1"), port);
		address(peer, sizeof(peer), family, (u64)view__get(v, "peer0"), (u64)view__get(v, "peer1"), peer_port);
		err = asprintf(&text, "%s %s%s%s",
			       type == SOCK_STREAM ? "tcp" :
			       type == SOCK_DGRAM  ? "udp" :
						     "ip",
			       local, peer_port ? " to " : "", peer_port ? peer : "");
	}
	return err < 0 ? NULL : text;
}

/* Returns an allocated text; NULL: no memory. */
static char *describe(const struct view *v, const struct schema_field *path)
{
	char *text;
	u32 len;
	const char *name = view__text(v, path, &len);

	if (view__get(v, "kind") == SYSCALL_FILE_SOCKET)
		return describe_socket(v, name, len);
	if (len)
		return strndup(name, len);
	return asprintf(&text, "pipe:[%llu]", (u64)view__get(v, "ino")) < 0 ? NULL : text;
}

/* Converts an IPv4 address of an IPv6 socket to the form of IPv4 sockets. */
static void plain_address(u64 *low, u64 *high)
{
	if (*low || (u32)*high != 0xffff0000)
		return;
	*low = *high >> 32;
	*high = 0;
}

/* Returns whether the peer is on this machine: both addresses are the same, or the peer's is a loopback address. */
static bool is_local(const struct view *v)
{
	u64 peer = (u64)view__get(v, "peer0");

	if (view__get(v, "family") == AF_INET && (peer & 0xff) == 127)
		return true;
	return peer == (u64)view__get(v, "local0") && view__get(v, "peer1") == view__get(v, "local1");
}

/* Returns the process that listens at the socket's peer address, or at all addresses; NULL: not known. */
static const struct peer_process *listener_of(const struct osrt_files *f, const struct view *v)
{
	struct listener at = { .low = (u64)view__get(v, "peer0"),
			       .high = (u64)view__get(v, "peer1"),
			       .net = (u32)view__get(v, "net"),
			       .port = (u16)view__get(v, "peer_port"),
			       .type = (u16)view__get(v, "type") };
	const struct peer_process *p;

	if (!at.port || !is_local(v))
		return NULL;
	plain_address(&at.low, &at.high);
	p = map__find(&f->listeners, &at);
	at.low = at.high = 0;
	return p ? p : map__find(&f->listeners, &at);
}

/* Returns the process at the other end if it is another process; NULL: not known. */
static const struct peer_process *peer_of(const struct osrt_files *f, const struct view *v)
{
	u64 end = (u64)view__get(v, "other_end");
	const struct peer_process *p = end ? map__find(&f->ends, &end) : NULL;

	if (!p)
		p = listener_of(f, v);
	return p && p->pid != (u32)view__get(v, "pid") ? p : NULL;
}

static struct peer_process *listener(struct osrt_files *f, const struct view *v)
{
	struct listener at = { .low = (u64)view__get(v, "local0"),
			       .high = (u64)view__get(v, "local1"),
			       .net = (u32)view__get(v, "net"),
			       .port = (u16)view__get(v, "local_port"),
			       .type = (u16)view__get(v, "type") };

	plain_address(&at.low, &at.high);
	return map__get(&f->listeners, &at);
}

static int on_peers(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), comm);
	struct osrt_files *f = arg;

	ROWS_EACH(v, rows) {
		u64 end = (u64)view__get(&v, "other_end");
		struct peer_process *p = end ? map__get(&f->ends, &end) : listener(f, &v);
		const char *name;
		u32 len;

		if (!p)
			return -ENOMEM;
		/* children inherit it: the first event is of the oldest process */
		if (p->pid)
			continue;
		name = view__text(&v, comm, &len);
		p->pid = (u32)view__get(&v, "pid");
		snprintf(p->name, sizeof(p->name), "%.*s", (int)(len < 16 ? len : 16), name);
	}
	return 0;
}

static int on_file(struct osrt_files *f, const struct view *v, const struct schema_field *path)
{
	struct number_key key = { names__number(f->process_names, (u32)view__get(v, "pid")),
				  (u32)view__get(v, "file") };
	struct file_name name = { 0 };
	const struct peer_process *peer = peer_of(f, v);
	char *text = describe(v, path);
	struct osrt_file *file;
	u32 *known;

	if (!text)
		return -ENOMEM;
	/* who holds a file's lock is no part of its name */
	if (peer && view__get(v, "kind") != SYSCALL_FILE_PATH)
		snprintf(name.text, sizeof(name.text), "%.250s (%s %u)", text, peer->name,
			 names__number(f->process_names, peer->pid));
	else
		snprintf(name.text, sizeof(name.text), "%s", text);
	free(text);
	known = map__get(&f->names, &name);
	file = map__get(&f->numbers, &key);
	if (!known || !file)
		return -ENOMEM;
	/* a new name is the last entry; the value is the index plus one */
	if (!*known)
		*known = f->names.n;
	*file = (struct osrt_file){ *known - 1, (u32)view__get(v, "kind"), peer ? peer->pid : 0,
				    (u32)view__get(v, "pid") };
	return 0;
}

static int on_files(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), path);
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = on_file(arg, &v, path);
	return err;
}

int osrt_files__new(struct osrt_files **out, const struct query *args)
{
	struct osrt_files *f = calloc(1, sizeof(*f));
	struct query all = *args;
	int err;

	*out = f;
	if (!f)
		return -ENOMEM;
	f->process_names = args->names;
	map__init(&f->numbers, sizeof(struct number_key), sizeof(struct osrt_file));
	map__init(&f->names, sizeof(struct file_name), sizeof(u32));
	map__init(&f->ends, sizeof(u64), sizeof(struct peer_process));
	map__init(&f->listeners, sizeof(struct listener), sizeof(struct peer_process));
	/* another thread may use the file first, outside of the selected time */
	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	err = query__read_kind(&all, "syscall_peer", on_peers, f);
	return err ? err : query__read_kind(&all, "syscall_file", on_files, f);
}

void osrt_files__free(struct osrt_files *f)
{
	if (!f)
		return;
	MAPS_FREE(&f->numbers, &f->names, &f->ends, &f->listeners);
	free(f);
}

u32 osrt_files__count(const struct osrt_files *f)
{
	return f->numbers.n;
}

const struct osrt_file *osrt_files__at(const struct osrt_files *f, u32 i)
{
	return map__value(&f->numbers, i);
}

const struct osrt_file *osrt_files__find(const struct osrt_files *f, u32 pid, u32 file)
{
	struct number_key key = { names__number(f->process_names, pid), file };

	return map__find(&f->numbers, &key);
}

const char *osrt_files__name(const struct osrt_files *f, u32 number)
{
	return ((const struct file_name *)map__key(&f->names, number))->text;
}

void osrt_file__write_other_end(const char *name, char *buf, size_t size)
{
	const char *from = strchr(name, ' '), *to = from ? strstr(from + 1, " to ") : NULL;

	*buf = '\0';
	if (to && (!strncmp(name, "tcp ", 4) || !strncmp(name, "udp ", 4)))
		snprintf(buf, size, "%.*s %.*s to %.*s", (int)(from - name), name, (int)strcspn(to + 4, " "), to + 4,
			 (int)(to - from - 1), from + 1);
}

u32 osrt_files__other_end(const struct osrt_files *f, u32 pid, const struct osrt_file *file)
{
	u32 number = names__number(f->process_names, pid);
	char reversed[OSRT_FILE_NAME];
	size_t len;

	if (file->peer)
		return file->peer;
	osrt_file__write_other_end(osrt_files__name(f, file->number), reversed, sizeof(reversed));
	len = strlen(reversed);
	for (u32 i = 0; len && i < f->numbers.n; i++) {
		const struct number_key *key = map__key(&f->numbers, i);
		const struct osrt_file *other = map__value(&f->numbers, i);
		const char *name = osrt_files__name(f, other->number);

		if (key->pid != number && !strncmp(name, reversed, len) && (!name[len] || name[len] == ' '))
			return other->pid;
	}
	return 0;
}
