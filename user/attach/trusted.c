// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A debug file decides where probes go in files that others map, so it must not be another user's. In a user namespace
 * of their own, users mount what they like on any path: the owner of each inode counts, which they can't choose, except by
 * FUSE.
 */
#include "attach/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#define LINKS_MAX 40 /* as the kernel has it */

struct walk {
	int root;
	uid_t owner;
	char done[PATH_MAX]; /* without symbolic links, "" is the root */
	char rest[2 * PATH_MAX];
	int links;
};

static bool is_trusted(const struct walk *w, int fd, const struct stat *st)
{
	struct statfs fs;

	if ((st->st_uid && st->st_uid != w->owner) || fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC)
		return false;
	if (S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return true;
	/* a group by the number of the user is that user's alone */
	return !(st->st_mode & S_IWOTH) && (!(st->st_mode & S_IWGRP) || st->st_gid == st->st_uid);
}

/* Takes the first name off the rest and puts it onto what is done. false: there is none left. */
static bool next_name(struct walk *w)
{
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/"), len = strlen(w->done);
	const char *name = w->rest + skip;

	if (n == 2 && !memcmp(name, "..", 2)) {
		while (len && w->done[--len] != '/')
			;
		w->done[len] = '\0';
	} else if (n && (n != 1 || *name != '.') && len + n + 1 < sizeof(w->done)) {
		snprintf(w->done + len, sizeof(w->done) - len, "/%.*s", (int)n, name);
	}
	memmove(w->rest, name + n, strlen(name + n) + 1);
	return n > 0;
}

/* What is done ends in a link: it goes on where that leads. */
static int follow(struct walk *w, int link)
{
	char target[PATH_MAX], rest[sizeof(w->rest)];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	char *slash = strrchr(w->done, '/');
	struct statfs fs;

	if (n < 0 || fstatfs(link, &fs))
		return -errno;
	/* the kernel's own links lead out of any root */
	if (++w->links > LINKS_MAX || fs.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	if (n == sizeof(target) ||
	    snprintf(rest, sizeof(rest), "%.*s/%s", (int)n, target, w->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, sizeof(rest));
	if (*target == '/')
		*w->done = '\0';
	else if (slash)
		*slash = '\0';
	return 0;
}

/* Opens what is done. */
static int open_done(const struct walk *w)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, w->root, *w->done ? w->done : "/", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int trusted__find(int root, const char *path, uid_t owner)
{
	struct walk w = { .root = root, .owner = owner };
	int fd = open_done(&w), err = fd < 0 ? fd : 0;
	bool trusted = true;
	struct stat st;

	if (!err && snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest))
		err = -ENAMETOOLONG;
	for (;;) {
		if (!err && fstat(fd, &st))
			err = -errno;
		trusted = trusted && !err && is_trusted(&w, fd, &st);
		if (!err && S_ISLNK(st.st_mode))
			err = follow(&w, fd);
		if (err || !next_name(&w))
			break;
		close(fd);
		fd = open_done(&w);
		err = fd < 0 ? fd : 0;
	}
	if (!err)
		err = !S_ISREG(st.st_mode) ? -EINVAL : trusted ? 0 : -EPERM;
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}
