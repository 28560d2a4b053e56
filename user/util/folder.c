// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/sudo.h"

#define LINKS_MAX 40 /* the kernel's limit */

struct walk {
	int folder; /* the current folder */
	char path[2 * PATH_MAX]; /* the path that remains */
	int links;
};

static bool is_trusted(uid_t owner)
{
	uid_t uid;
	gid_t gid;

	return !owner || owner == geteuid() || owner == getuid() || (sudo__user(&uid, &gid) && owner == uid);
}

/* Removes the first name from the rest; false: there is none. */
static bool next_name(struct walk *w, char *name)
{
	size_t skip = strspn(w->path, "/"), n = strcspn(w->path + skip, "/");

	if (n > NAME_MAX)
		n = NAME_MAX + 1; /* the kernel refuses it */
	memcpy(name, w->path + skip, n);
	name[n] = '\0';
	memmove(w->path, w->path + skip + n, strlen(w->path + skip + n) + 1);
	return n > 0;
}

static int move_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	close(w->folder);
	w->folder = fd;
	return 0;
}

/* Returns whether fd is in /proc: the text of a link there is not the path of what it leads to. */
static bool on_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int follow(struct walk *w, int link, const char *name)
{
	char target[PATH_MAX], rest[sizeof(w->path)];
	ssize_t n;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (on_proc(w->folder))
		return move_to(w, openat(w->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
	n = readlinkat(link, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == sizeof(target) ||
	    snprintf(rest, sizeof(rest), "%.*s/%s", (int)n, target, w->path) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->path, rest, sizeof(rest));
	return *rest == '/' ? move_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Enters a folder, or follows a link. */
static int step(struct walk *w, const char *name, char *err, size_t len)
{
	int fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), ret;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		ret = -errno;
	} else if (S_ISDIR(st.st_mode)) {
		return move_to(w, fd);
	} else if (!S_ISLNK(st.st_mode)) {
		ret = -ENOTDIR;
	} else if (!is_trusted(st.st_uid)) {
		snprintf(err, len,
			 "'%s' in the path of its folder is a symbolic link of another user (uid %u), who could let it "
			 "lead anywhere: name the folder itself",
			 name, st.st_uid);
		ret = -EPERM;
	} else {
		ret = follow(w, fd, name);
	}
	close(fd);
	return ret;
}

int folder__open(const char *path, char *err, size_t len)
{
	struct walk w = { .folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	char name[NAME_MAX + 2];
	int ret = w.folder < 0 ? -errno : 0;

	*err = '\0';
	if (!ret && snprintf(w.path, sizeof(w.path), "%s", path) >= (int)sizeof(w.path))
		ret = -ENAMETOOLONG;
	while (!ret && next_name(&w, name))
		ret = step(&w, name, err, len);
	if (ret && w.folder >= 0)
		close(w.folder);
	return ret ? ret : w.folder;
}

/*
 * The kernel checks the rights of the user behind sudo, and makes the folder that user's. A later chown() could meet
 * another folder that the user put in its place.
 */
static int make(int parent, const char *name)
{
	int err;
	uid_t uid;
	gid_t gid;

	if (sudo__user(&uid, &gid)) {
		setfsgid(gid);
		setfsuid(uid);
	}
	err = mkdirat(parent, name, 0777) ? -errno : 0;
	setfsuid(geteuid());
	setfsgid(getegid());
	return err == -EEXIST ? 0 : err;
}

int folder__create(const char *path, char *err, size_t len)
{
	size_t n = strlen(path), at;
	char text[PATH_MAX], folder[PATH_MAX], why[512] = "";
	int ret = -ENAMETOOLONG, parent;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n < sizeof(text)) {
		memcpy(text, path, n);
		text[n] = '\0';
		for (at = n; at && text[at - 1] != '/';)
			at--;
		snprintf(folder, sizeof(folder), "%.*s", at ? (int)at : 1, at ? text : ".");
		parent = folder__open(folder, why, sizeof(why));
		ret = parent < 0 ? parent : make(parent, text[at] ? text + at : ".");
		if (parent >= 0)
			close(parent);
	}
	if (ret)
		snprintf(err, len, "cannot create the folder %s: %s", path, *why ? why : strerror(-ret));
	return ret;
}
