// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/sudo.h"
#include "util/walk.h"

/* Why a walk was refused */
struct refusal {
	char *err;
	size_t len;
};

static bool is_trusted(uid_t owner)
{
	uid_t uid;
	gid_t gid;

	return !owner || owner == geteuid() || owner == getuid() || (sudo__user(&uid, &gid) && owner == uid);
}

static int visit(int fd, const char *name, void *arg)
{
	const struct refusal *r = arg;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISLNK(st.st_mode) || is_trusted(st.st_uid))
		return 0;
	snprintf(r->err, r->len,
		 "'%s' in the path of its folder is a symbolic link of another user (uid %u), who could let it lead "
		 "anywhere: name the folder itself",
		 name, st.st_uid);
	return -EPERM;
}

int folder__open(const char *path, char *err, size_t len)
{
	int fd;
	struct stat st;

	*err = '\0';
	fd = walk__below(AT_FDCWD, path, visit, &(struct refusal){ err, len });
	if (fd < 0 || (!fstat(fd, &st) && S_ISDIR(st.st_mode)))
		return fd;
	close(fd);
	return -ENOTDIR;
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
