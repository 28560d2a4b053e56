// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/walk.h"

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

#define LINKS_MAX 40 /* the kernel's limit */
#define DEPTH_MAX 128

struct walk {
	int fds[DEPTH_MAX]; /* from the root to the current inode; ".." returns to the previous one */
	int n;
	char path[2 * PATH_MAX];
	int links;
	bool is_own;
	walk_visit *visit;
	void *arg;
};

static void leave_to(struct walk *w, int n)
{
	while (w->n > n)
		close(w->fds[--w->n]);
}

/* Enters an inode; takes over the descriptor. */
static int enter(struct walk *w, int fd, const char *name)
{
	int err = fd < 0 ? -errno : w->visit ? w->visit(fd, name, w->arg) : 0;

	if (!err && w->n == DEPTH_MAX)
		err = -ENAMETOOLONG;
	if (!err)
		w->fds[w->n++] = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

/* Removes the first name from the rest; "": there is none. 0 or -ENAMETOOLONG. */
static int next_name(struct walk *w, char name[NAME_MAX + 1])
{
	size_t skip = strspn(w->path, "/"), n = strcspn(w->path + skip, "/");

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->path + skip, n);
	name[n] = '\0';
	memmove(w->path, w->path + skip + n, strlen(w->path + skip + n) + 1);
	return 0;
}

/* Continues at the target of the current inode, a link. */
static int follow(struct walk *w, const char *name)
{
	char target[PATH_MAX], rest[sizeof(w->path)];
	int link = w->fds[w->n - 1];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	struct statfs fs;

	if (n < 0 || fstatfs(link, &fs))
		return -errno;
	/* links of /proc lead out of any root, and their text is not the path of what they lead to */
	if (++w->links > LINKS_MAX || (fs.f_type == PROC_SUPER_MAGIC && !w->is_own))
		return -ELOOP;
	if (fs.f_type == PROC_SUPER_MAGIC) {
		leave_to(w, w->n - 1);
		return enter(w, openat(w->fds[w->n - 1], name, O_PATH | O_CLOEXEC), name);
	}
	if (n == sizeof(target) ||
	    snprintf(rest, sizeof(rest), "%.*s/%s", (int)n, target, w->path) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->path, rest, sizeof(rest));
	leave_to(w, n && *target == '/' ? 1 : w->n - 1);
	return 0;
}

static int step(struct walk *w, const char *name)
{
	struct statx st;
	int err;

	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..") && !w->is_own) {
		leave_to(w, w->n > 1 ? w->n - 1 : 1);
		return 0;
	}
	err = enter(w, openat(w->fds[w->n - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC), name);
	if (err)
		return err;
	/* don't contact a file server, as the visitor may have checked that there is none */
	if (statx(w->fds[w->n - 1], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return -errno;
	return S_ISLNK(st.stx_mode) ? follow(w, name) : 0;
}

int walk__below(int root, const char *path, walk_visit *visit, void *arg)
{
	struct walk w = { .visit = visit, .arg = arg, .is_own = root == AT_FDCWD };
	char name[NAME_MAX + 1];
	int err = -ENAMETOOLONG, fd;

	if (snprintf(w.path, sizeof(w.path), "%s", path) < (int)sizeof(w.path))
		err = enter(&w, w.is_own ? open("/", O_PATH | O_CLOEXEC) : fcntl(root, F_DUPFD_CLOEXEC, 0), "");
	if (!err && w.is_own && *path != '/')
		err = enter(&w, open(".", O_PATH | O_CLOEXEC), ".");
	while (!err) {
		err = next_name(&w, name);
		if (err || !*name)
			break;
		err = step(&w, name);
	}
	fd = err ? err : w.fds[--w.n];
	leave_to(&w, 0);
	return fd;
}
