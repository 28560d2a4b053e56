// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/mapped.h"

#include "process/filesystem.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_PATH: it is only named, and no server is asked. */
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

static int find_path(const struct mapping *m)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/%u/root", m->pid);
	return file__find_in_root(root, m->path);
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

	/* even to name a file of NFS may ask its server */
	*remote = known && !remote_files ? filesystem__remote_type(type) : NULL;
	if (*remote)
		return -EREMOTE;
	fd = find_mapping(m);
	is_named = fd < 0;
	if (fd < 0)
		fd = find_path(m);
	if (fd < 0)
		return fd;
	if (!remote_files && !known)
		*remote = filesystem__remote_file(fd, m->pid);
	if (!*remote && (!is_named || by_path == MAPPED_ANY || is_inode(fd, m->ino)))
		return file__reopen_regular(fd);
	close(fd);
	return *remote ? -EREMOTE : -ENOENT;
}
