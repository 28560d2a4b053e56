// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "libc.h"
#include "writers.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 40 /* on one path, the kernel's own limit */

bool file__status(int fd, const char *path, struct stat *st)
{
	return !syscall(SYS_newfstatat, fd, path, st, *path ? 0 : AT_EMPTY_PATH);
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
	/* a user's own group, which distributions give the user's number, has no other members */
	return st->st_mode & S_IWGRP && st->st_gid && st->st_gid != st->st_uid && st->st_gid != w->group;
}

/* entry NULL: it does not exist. In a sticky folder other users can't move what they do not own. */
static int others_decide(const struct stat *folder, const struct stat *entry, const struct writers *w)
{
	return others_may_write(folder, w) && !(folder->st_mode & S_ISVTX && is_own(folder) && entry && is_own(entry));
}

enum way { WAY_CLOSED, WAY_OPEN, WAY_LINK };

/* Replaces the link that begins at `name` in the path by its target. Returns 0 or -1. */
static int follow(char *path, char *name, size_t len, int folder)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	snprintf(rest, sizeof(rest), "%s", name + len);
	name[len] = '\0';
	n = readlinkat(folder, name, target, sizeof(target) - 1);
	if (n <= 0)
		return -1;
	target[n] = '\0';
	if (*target == '/')
		name = path;
	return snprintf(name, (size_t)(path + PATH_MAX - name), "%s%s", target, rest) >= path + PATH_MAX - name ? -1 :
														  0;
}

/* Checks up to the first link on the path, which is then replaced in `path`. */
static enum way judge(char *path, const struct writers *w)
{
	int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	enum way way = WAY_CLOSED;
	struct stat here, entry;
	char *name = path;
	size_t len;
	char after;

	if (at < 0 || !file__status(at, "", &here))
		way = WAY_OPEN;
	for (; way == WAY_CLOSED && *name; name += len + (after == '/')) {
		len = strcspn(name, "/");
		after = name[len];
		if (!len)
			continue;
		name[len] = '\0';
		next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		name[len] = after;
		if ((next >= 0 && !file__status(next, "", &entry)) ||
		    others_decide(&here, next >= 0 ? &entry : NULL, w))
			way = WAY_OPEN;
		else if (next >= 0 && S_ISLNK(entry.st_mode))
			way = follow(path, name, len, at) ? WAY_OPEN : WAY_LINK;
		close(at);
		at = next;
		here = entry;
		/* others can't create it either */
		if (next < 0)
			return way;
	}
	if (at >= 0)
		close(at);
	return way == WAY_CLOSED && others_may_write(&here, w) ? WAY_OPEN : way;
}

int path__is_open_to_others(const char *path, const struct writers *w)
{
	enum way way = WAY_LINK;
	char buf[PATH_MAX];

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return 1;
	for (int links = 0; way == WAY_LINK && links < LINKS_MAX; links++)
		way = judge(buf, w);
	return way != WAY_CLOSED;
}

int writers__of_folder(const char *folder, struct writers *w)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int err = fd < 0 || !file__status(fd, "", &st) ? -1 : 0;

	if (fd >= 0)
		close(fd);
	if (err)
		return -1;
	*w = (struct writers){ .owner = st.st_uid, .group = st.st_mode & S_IWGRP ? st.st_gid : (gid_t)-1 };
	return path__is_open_to_others(folder, w) ? -1 : 0;
}
