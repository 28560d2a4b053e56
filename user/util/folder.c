// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/sudo.h"

#define LINKS_MAX 40 /* the kernel's limit */

struct walk {
	int at; /* the current folder */
	char rest[2 * PATH_MAX]; /* the path that remains */
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
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");

	if (n > NAME_MAX)
		n = NAME_MAX + 1; /* the kernel refuses it */
	memcpy(name, w->rest + skip, n);
	name[n] = '\0';
	memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
	return n > 0;
}

static int move_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	close(w->at);
	w->at = fd;
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
	char target[PATH_MAX], rest[sizeof(w->rest)];
	ssize_t n;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (on_proc(w->at))
		return move_to(w, openat(w->at, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
	n = readlinkat(link, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == sizeof(target) ||
	    snprintf(rest, sizeof(rest), "%.*s/%s", (int)n, target, w->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, sizeof(rest));
	return *rest == '/' ? move_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Enters a folder, or follows a link. */
static int step(struct walk *w, const char *name, char *err, size_t len)
{
	int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), ret;
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
	struct walk w = { .at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	char name[NAME_MAX + 2];
	int ret = w.at < 0 ? -errno : 0;

	*err = '\0';
	if (!ret && snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest))
		ret = -ENAMETOOLONG;
	while (!ret && next_name(&w, name))
		ret = step(&w, name, err, len);
	if (ret && w.at >= 0)
		close(w.at);
	return ret ? ret : w.at;
}
