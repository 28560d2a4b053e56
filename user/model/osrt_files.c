// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/osrt_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/*
 * A descriptor's file. It is recorded once per pid, also if several processes have the pid in turn; files' numbers
 * are the trace's own.
 */
struct number_key {
	u32 pid, file; /* pid: the number */
};

/* The name in output, cut to this length: files of one name are one. */
struct file_name {
	char text[288];
};

struct osrt_files {
	const struct names *process_names;
	struct map numbers; /* struct number_key -> struct osrt_file */
	struct map names; /* struct file_name -> u32, its index plus one */
};

/* "127.0.0.1:80" or "[::1]:80" */
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

/* A malloc'ed text; NULL: no memory */
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

static int on_file(struct osrt_files *f, const struct view *v, const struct schema_field *path)
{
	struct number_key key = { names__number(f->process_names, (u32)view__get(v, "pid")),
				  (u32)view__get(v, "file") };
	struct file_name name = { 0 };
	char *text = describe(v, path);
	struct osrt_file *file;
	u32 *known;

	if (!text)
		return -ENOMEM;
	snprintf(name.text, sizeof(name.text), "%s", text);
	free(text);
	known = map__get(&f->names, &name);
	file = map__get(&f->numbers, &key);
	if (!known || !file)
		return -ENOMEM;
	/* a new one is the last; the value of one that is known says where it is */
	if (!*known)
		*known = f->names.n;
	*file = (struct osrt_file){ *known - 1, (u32)view__get(v, "kind") };
	return 0;
}

static int on_files(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *path = schema_event__field(v.event, "path");
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_file(arg, &v, path);
	return err;
}

int osrt_files__new(struct osrt_files **out, const struct query *args)
{
	struct osrt_files *f = calloc(1, sizeof(*f));
	struct query all = *args;

	*out = f;
	if (!f)
		return -ENOMEM;
	f->process_names = args->names;
	map__init(&f->numbers, sizeof(struct number_key), sizeof(struct osrt_file));
	map__init(&f->names, sizeof(struct file_name), sizeof(u32));
	/* its first use may be another thread's and outside of the selected time */
	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	return query__read_kind(&all, "syscall_file", on_files, f);
}

void osrt_files__free(struct osrt_files *f)
{
	if (!f)
		return;
	map__free(&f->numbers);
	map__free(&f->names);
	free(f);
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
