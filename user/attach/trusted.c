// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A debug file decides where probes go in files that others map, so it must not belong to another user. In their own
 * user namespace users can mount anything at any path. So the owner of each inode is checked, which they can't
 * choose, except with FUSE.
 */
#include "attach/trusted.h"

#include "process/filesystem.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct search {
	walk_visit *may_visit;
	void *arg;
	uid_t owner;
	bool trusted; /* so far */
};

static bool is_trusted(const struct search *s, int fd, const struct stat *st)
{
	struct statfs fs;

	if ((st->st_uid && st->st_uid != s->owner) || fstatfs(fd, &fs) || fs.f_type == FILESYSTEM_FUSE)
		return false;
	if (S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return true;
	/* a group with the same number as the user has only that user as a member */
	return !(st->st_mode & S_IWOTH) && (!(st->st_mode & S_IWGRP) || st->st_gid == st->st_uid);
}

static int visit(int fd, const char *name, void *arg)
{
	struct search *s = arg;
	struct stat st;
	int err = s->may_visit(fd, name, s->arg);

	if (err)
		return err;
	if (fstat(fd, &st))
		return -errno;
	s->trusted = s->trusted && is_trusted(s, fd, &st);
	return 0;
}

int trusted__find(int root, const char *path, uid_t owner, walk_visit *may_visit, void *arg)
{
	struct search s = { .may_visit = may_visit, .arg = arg, .owner = owner, .trusted = true };
	int fd = walk__below(root, path, visit, &s), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : s.trusted ? 0 : -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}
