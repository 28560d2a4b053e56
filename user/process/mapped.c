// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/mapped.h"

#include "process/filesystem.h"
#include "util/file.h"
#include "util/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_PATH only names the file, so no server is asked. */
static int find_mapping(const struct mapping *m)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", m->pid, m->start, m->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

struct search {
	u32 pid;
	const char *remote;
};

/* Reads the next component of a path only if its folder is local: a remote one may never answer. */
static int visit(int fd, void *arg)
{
	struct search *s = arg;

	s->remote = filesystem__remote_file(fd, s->pid);
	return s->remote ? -EREMOTE : 0;
}

/* The file that is at the path now may be on another file system than the mapped one. */
static int find_path(const struct mapping *m, bool remote_files, const char **remote)
{
	struct search s = { .pid = m->pid };
	char path[32];
	int root, fd;

	snprintf(path, sizeof(path), "/proc/%u/root", m->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = walk__below(root, m->path, remote_files ? NULL : visit, &s);
	close(root);
	*remote = s.remote;
	return fd;
}

static bool is_inode(int fd, u64 ino)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == ino;
}

int mapped__open(const struct mapping *m, enum mapped_path by_path, bool remote_files, const char **remote)
{
	char type[64];
	bool known = m->dev && filesystem__type(m->dev >> 20, m->dev & 0xfffff, m->pid, type, sizeof(type)), is_named;
	int fd;

	/* even an O_PATH open of a file on NFS may ask its server */
	*remote = known && !remote_files ? filesystem__remote_type(type) : NULL;
	if (*remote)
		return -EREMOTE;
	fd = find_mapping(m);
	is_named = fd < 0;
	if (is_named)
		fd = find_path(m, remote_files, remote);
	if (fd < 0)
		return fd;
	if (!remote_files && !known && !is_named)
		*remote = filesystem__remote_file(fd, m->pid);
	if (!*remote && (!is_named || by_path == MAPPED_ANY || is_inode(fd, m->ino)))
		return file__reopen_regular(fd);
	close(fd);
	return *remote ? -EREMOTE : -ENOENT;
}
