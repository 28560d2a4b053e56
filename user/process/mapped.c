// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/mapped.h"

#include "process/filesystem.h"
#include "process/procs.h"
#include "sandbox/bounded.h"
#include "util/file.h"
#include "util/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define LATE "a file system that does not answer"

/* What a child opens. */
struct request {
	u32 pid;
	bool remote_files;
	char link[80]; /* of /proc/PID, to the file itself; "": the path is used */
	u64 dev; /* of a mapping; 0: unknown */
	u64 copy_max; /* bytes of a remote file that are copied; 0: it is not copied */
	u64 ino; /* the number that a file found by its path must have; 0: any */
	char path[PATH_MAX]; /* "": only the link is used */
};

struct search {
	const struct request *request;
	const char *remote;
};

/* Reads the next component of a path only if its folder is local: a remote one may never answer. */
static int visit(int fd, const char *name, void *arg)
{
	struct search *s = arg;

	s->remote = filesystem__remote_file(fd, s->request->pid, 0);
	return s->remote ? -EREMOTE : 0;
}

/* The file that is at the path now may be on another file system than the mapped one. */
static int find_path(const struct request *r, const char **remote)
{
	struct search s = { .request = r };
	char path[32];
	int root, fd;

	snprintf(path, sizeof(path), "/proc/%u/root", r->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = walk__below(root, r->path, r->remote_files ? NULL : visit, &s);
	close(root);
	*remote = s.remote;
	return fd;
}

static bool is_inode(int fd, u64 ino)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == ino;
}

/* O_PATH only names the file, so no server is asked; but even that may ask the server of NFS. */
static int open_named(const struct request *r, const char *name, const char **remote)
{
	char type[64];
	int fd;

	if (!r->remote_files && r->dev && filesystem__type(r->dev >> 20, r->dev & 0xfffff, r->pid, type, sizeof(type)))
		*remote = filesystem__remote_type(type);
	if (*remote)
		return -EREMOTE;
	fd = open(name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*remote = r->remote_files ? NULL : filesystem__remote_file(fd, r->pid, r->dev);
	if (!*remote)
		return fd;
	close(fd);
	return -EREMOTE;
}

static int find_file(const struct request *r, const char **remote)
{
	int fd = *r->link ? open_named(r, r->link, remote) : r->pid ? -ENOENT : open_named(r, r->path, remote);

	if (fd >= 0 || *remote || !*r->path || !r->pid)
		return fd;
	fd = find_path(r, remote);
	if (fd < 0 || !r->ino || is_inode(fd, r->ino))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Returns a descriptor of a copy. Closes fd, which may wait for its server, too. */
static int copy_file(int fd, u64 max)
{
	int copy = memfd_create("sonde", MFD_CLOEXEC);
	ssize_t n = copy < 0 ? -1 : 1;
	u64 size = 0;
	int err;

	for (; n > 0 && size <= max; size += n > 0 ? (u64)n : 0)
		n = sendfile(copy, fd, NULL, max + 1 - size);
	err = n < 0 ? -errno : size > max ? -EFBIG : 0;
	close(fd);
	if (!err)
		return copy;
	if (copy >= 0)
		close(copy);
	return err;
}

/* In a child, whose constant texts have the addresses of its parent's. */
static int open_file(const void *arg, struct bounded_reply *reply)
{
	const struct request *r = arg;
	const char *remote = NULL;
	int fd = find_file(r, &remote);
	bool copied = fd >= 0 && r->copy_max && filesystem__remote_file(fd, r->pid, r->dev);

	bounded__add(reply, &remote, sizeof(remote));
	if (fd >= 0)
		fd = file__reopen_regular(fd);
	if (fd >= 0 && copied)
		fd = copy_file(fd, r->copy_max);
	reply->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int request_file(const struct request *r, const char **remote)
{
	struct bounded_reply reply;
	int err = bounded__call(r->pid, open_file, r, sizeof(*r), &reply);

	*remote = err == -ETIMEDOUT ? LATE : NULL;
	if (reply.n == sizeof(*remote))
		memcpy(remote, reply.bytes, sizeof(*remote));
	free(reply.bytes);
	return *remote ? -EREMOTE : err ? err : reply.fd;
}

int mapped__open(const struct mapping *m, enum mapped_path by_path, bool remote_files, const char **remote)
{
	return mapped__open_copy(m, by_path, remote_files, 0, remote);
}

int mapped__open_copy(const struct mapping *m, enum mapped_path by_path, bool remote_files, u64 copy_max,
		      const char **remote)
{
	struct request r = {
		.pid = procs__shown_as(m->pid),
		.remote_files = remote_files,
		.copy_max = copy_max,
		.dev = m->dev,
		.ino = by_path == MAPPED_SAME ? m->ino : 0,
	};

	*remote = NULL;
	snprintf(r.link, sizeof(r.link), "/proc/%u/map_files/%llx-%llx", r.pid, m->start, m->end);
	if (snprintf(r.path, sizeof(r.path), "%s", m->path) >= (int)sizeof(r.path))
		return -ENAMETOOLONG;
	return request_file(&r, remote);
}

int mapped__open_path(u32 pid, const char *path, bool remote_files, const char **remote)
{
	struct request r = { .pid = procs__shown_as(pid), .remote_files = remote_files };

	*remote = NULL;
	if (snprintf(r.path, sizeof(r.path), "%s", path) >= (int)sizeof(r.path))
		return -ENAMETOOLONG;
	return request_file(&r, remote);
}

int mapped__open_program(u32 pid, bool remote_files, const char **remote)
{
	struct request r = { .pid = procs__shown_as(pid), .remote_files = remote_files };

	snprintf(r.link, sizeof(r.link), "/proc/%u/exe", r.pid);
	return request_file(&r, remote);
}
