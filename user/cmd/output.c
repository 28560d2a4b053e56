// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void default_path(char *buf, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, len, "sonde-%Y%m%d-%H%M%S.sonde", &tm);
}

/* The trace belongs to whoever asked for it through sudo. */
static void give_to_sudo_user(int fd)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (uid && gid && geteuid() == 0 && fchown(fd, strtoul(uid, NULL, 10), strtoul(gid, NULL, 10)))
		return; /* it stays root's: readable by root alone, which is safe */
}

/* A file without a name in the directory where it is to be; not all file systems have such. */
static int create_unnamed(struct output *out)
{
	char dir[sizeof(out->path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", out->path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	out->fd = open(slash ? dir : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (out->fd < 0)
		return -errno;
	out->unnamed = true;
	give_to_sudo_user(out->fd);
	return 0;
}

static int create_new(struct output *out)
{
	/* a new file, so that what another user put there before is neither written to nor followed */
	out->fd = open(out->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out->fd < 0)
		return -errno;
	out->created = true;
	give_to_sudo_user(out->fd);
	return 0;
}

/*
 * A trace is locked while it is recorded into: -f would take its name away, and with that all that the other one
 * has still to write.
 */
static bool is_recorded_into(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

int output__create(struct output *out, const char *path, bool force, char *err, size_t len)
{
	struct stat st;
	int ret;

	out->fd = -1;
	if (path)
		snprintf(out->path, sizeof(out->path), "%s", path);
	else
		default_path(out->path, sizeof(out->path));
	out->force = force;
	if (!lstat(out->path, &st)) {
		if (!force) {
			ret = -EEXIST;
			goto out;
		}
		if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
			out->fd = open(out->path, O_WRONLY | O_CLOEXEC);
			ret = out->fd < 0 ? -errno : 0;
			goto out;
		}
		if (is_recorded_into(out->path)) {
			ret = -EBUSY;
			goto out;
		}
	}
	ret = create_unnamed(out);
	if (ret == -EOPNOTSUPP || ret == -EISDIR) {
		if (force)
			unlink(out->path);
		ret = create_new(out);
	}
	if (!ret)
		flock(out->fd, LOCK_EX | LOCK_NB);
out:
	if (ret == -EBUSY)
		snprintf(err, len, "%s is being recorded into; -o names another file", out->path);
	else if (ret == -EEXIST)
		snprintf(err, len, "%s exists already; -f overwrites it, -o names another", out->path);
	else if (ret)
		snprintf(err, len, "cannot create %s: %s", out->path, strerror(-ret));
	return ret;
}

int output__publish(struct output *out, char *err, size_t len)
{
	char fd[64];
	int ret = 0;

	if (!out->unnamed)
		return 0;
	if (out->force && is_recorded_into(out->path)) {
		snprintf(err, len, "%s is being recorded into; -o names another file", out->path);
		return -EBUSY;
	}
	if (out->force)
		unlink(out->path);
	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", out->fd);
	if (linkat(AT_FDCWD, fd, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW)) {
		ret = -errno;
		snprintf(err, len, "cannot create %s: %s", out->path, strerror(-ret));
		return ret;
	}
	out->unnamed = false;
	out->created = true;
	return 0;
}

void output__close(struct output *out)
{
	if (out->fd > 0)
		close(out->fd);
	out->fd = -1;
}

void output__discard(struct output *out)
{
	/* a recording that has left root may not */
	if (out->created && unlink(out->path))
		fprintf(stderr, "sonde: %s is left, and holds nothing: %s\n", out->path, strerror(errno));
	output__close(out);
}
