// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "libc.h"
#include "writers.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel has it: libc's fstat is of a version that an older glibc lacks. */
static int status(int fd, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static int is_own(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

static int others_may_write(const struct stat *st, const struct writers *w)
{
	if (st->st_mode & S_IWOTH)
		return 1;
	if (w->any_but_all)
		return 0;
	if (!is_own(st) && st->st_uid != w->owner)
		return 1;
	return st->st_mode & S_IWGRP && st->st_gid && st->st_gid != w->group;
}

/* entry: NULL: there is none. In a sticky folder others can't move what is not theirs. */
static int others_decide(const struct stat *folder, const struct stat *entry, const struct writers *w)
{
	return others_may_write(folder, w) && !(folder->st_mode & S_ISVTX && is_own(folder) && entry && is_own(entry));
}

int path__is_open_to_others(const char *path, const struct writers *w)
{
	int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next, is_open;
	char name[NAME_MAX + 1];
	struct stat here, entry;
	size_t len;

	is_open = at < 0 || status(at, &here);
	for (; !is_open && *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (!len || len > NAME_MAX)
			continue;
		memcpy(name, path, len);
		name[len] = '\0';
		next = openat(at, name, O_PATH | O_CLOEXEC);
		is_open = next >= 0 && status(next, &entry);
		is_open = is_open || others_decide(&here, next >= 0 ? &entry : NULL, w);
		close(at);
		at = next;
		here = entry;
		/* what is not there, others can't make either */
		if (next < 0)
			return is_open;
	}
	if (at >= 0)
		close(at);
	return is_open || others_may_write(&here, w);
}

int writers__of_folder(const char *folder, struct writers *w)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int err = fd < 0 || status(fd, &st) ? -1 : 0;

	if (fd >= 0)
		close(fd);
	if (err)
		return -1;
	*w = (struct writers){ .owner = st.st_uid, .group = st.st_mode & S_IWGRP ? st.st_gid : (gid_t)-1 };
	return path__is_open_to_others(folder, w) ? -1 : 0;
}
