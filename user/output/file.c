// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "util/file.h"
#include "util/folder.h"
#include "util/path.h"
#include "util/sudo.h"
#include "util/test_switch.h"

void output__default_path(char *buf, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, len, "sonde-%Y%m%d-%H%M%S.sonde", &tm);
}

bool output__is_stdout(const char *path)
{
	return !strcmp(path, "/dev/stdout") || !strcmp(path, "/dev/fd/1") || !strcmp(path, "/proc/self/fd/1");
}

/* Gives the file to the user who runs sudo. */
static void give_to_sudo_user(int fd)
{
	uid_t uid;
	gid_t gid;

	if (sudo__user(&uid, &gid) && fchown(fd, uid, gid))
		return; /* The file stays root's, and only root can read it, which is safe. */
}

static const char *name_of(const struct output *out)
{
	const char *slash = strrchr(out->path, '/');

	return slash ? slash + 1 : out->path;
}

static int open_directory(struct output *out, char *err, size_t len)
{
	char dir[sizeof(out->path)], why[512];
	const char *name = name_of(out);
	int ret;

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - out->path), out->path);
	ret = folder__open(*dir ? dir : ".", why, sizeof(why));
	if (ret < 0)
		snprintf(err, len, "cannot create %s: %s", out->path, *why ? why : strerror(-ret));
	else
		out->dir = ret;
	return ret < 0 ? ret : 0;
}

/* Is the file a trace that another sonde records and has locked? -f would remove its name and lose the recording. */
static bool is_recorded_into(const struct output *out)
{
	int path_fd = openat(out->dir, name_of(out), O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	bool locked;

	fd = path_fd < 0 ? -1 : file__reopen_regular(path_fd);
	locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return locked;
}

/* Is it /dev/null, or /dev/full, to which each write fails with ENOSPC? Nothing can be lost or overwritten there. */
static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 && (minor(st->st_rdev) == 3 || minor(st->st_rdev) == 7);
}

static int open_device(struct output *out)
{
	int path_fd = openat(out->dir, name_of(out), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char link[32];

	if (path_fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	if (fstat(path_fd, &st) || !is_null_device(&st))
		errno = EINVAL;
	else
		out->fd = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY);
	close(path_fd);
	return out->fd < 0 ? -errno : 0;
}

static int refuse_kind(const struct output *out, const struct stat *st, char *err, size_t len)
{
	if (S_ISDIR(st->st_mode)) {
		snprintf(err, len, "cannot create %s: %s", out->path, strerror(EISDIR));
		return -EISDIR;
	}
	snprintf(
		err, len,
		"%s is %s: sonde writes only to regular files, because another user may have put it there; to write to "
		"it nevertheless: `-o /dev/stdout > %s`",
		out->path,
		S_ISFIFO(st->st_mode) ? "a FIFO" :
		S_ISSOCK(st->st_mode) ? "a socket" :
					"a device",
		out->path);
	return -EINVAL;
}

/* Checks the path. Returns 0 if the file may be created, 1 if it was opened, or negative errno with a message. */
static int check_existing(struct output *out, char *err, size_t len)
{
	struct stat st;
	int ret;

	if (fstatat(out->dir, name_of(out), &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !is_null_device(&st))
		return refuse_kind(out, &st, err, len);
	if (!out->force) {
		snprintf(err, len, "%s exists already; -f replaces it, -o names another", out->path);
		return -EEXIST;
	}
	if (is_null_device(&st)) {
		ret = open_device(out);
		if (ret)
			snprintf(err, len, "cannot create %s: %s", out->path, strerror(-ret));
		return ret ? ret : 1;
	}
	if (!is_recorded_into(out))
		return 0;
	snprintf(err, len, "another sonde is recording to %s; -o names another file", out->path);
	return -EBUSY;
}

static int choose_temporary_name(struct output *out)
{
	unsigned long long random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(out->temporary, sizeof(out->temporary), ".sonde-%016llx", random);
	return 0;
}

/* Creates an unnamed file in the directory or, where the file system does not support that, one with a random name. */
static int create(struct output *out)
{
	struct stat st;
	int ret;

	if (!test_switch__is_set("no-tmpfile"))
		out->fd = openat(out->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	else
		errno = EOPNOTSUPP;
	if (out->fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	if (out->fd < 0) {
		ret = choose_temporary_name(out);
		if (!ret)
			out->fd = openat(out->dir, out->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
					 0600);
		if (out->fd < 0) {
			*out->temporary = '\0';
			return ret ? ret : -errno;
		}
	}
	if (fstat(out->fd, &st))
		return -errno;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->unnamed = true;
	give_to_sudo_user(out->fd);
	flock(out->fd, LOCK_EX | LOCK_NB);
	return 0;
}

static int use_stdout(struct output *out, char *err, size_t len)
{
	if (isatty(STDOUT_FILENO)) {
		snprintf(err, len, "%s is a terminal, which can't show what is to be written: name a file with -o",
			 out->path);
		return -EINVAL;
	}
	out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (out->fd >= 0)
		return 0;
	snprintf(err, len, "cannot write to %s: %s", out->path, strerror(errno));
	return -errno;
}

int output__create(struct output *out, const char *path, bool force, char *err, size_t len)
{
	int ret;

	*out = (struct output){ .fd = -1, .dir = -1, .force = force };
	if (path && (strlen(path) >= sizeof(out->path) || path__ends_with(path, "/"))) {
		ret = path__ends_with(path, "/") ? -EISDIR : -ENAMETOOLONG;
		snprintf(err, len, "cannot create %.200s: %s", path, strerror(-ret));
		return ret;
	}
	if (path)
		snprintf(out->path, sizeof(out->path), "%s", path);
	else
		output__default_path(out->path, sizeof(out->path));
	if (output__is_stdout(out->path))
		return use_stdout(out, err, len);
	ret = open_directory(out, err, len);
	if (ret)
		return ret;
	ret = check_existing(out, err, len);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = create(out);
	if (ret)
		snprintf(err, len, "cannot create %s: %s", out->path, strerror(-ret));
	return ret;
}

/* Gives the temporary file its final name; replaces an existing file only with -f. */
static int rename_temporary(struct output *out)
{
	const char *name = name_of(out);

	if (!renameat2(out->dir, out->temporary, out->dir, name, out->force ? 0 : RENAME_NOREPLACE))
		return 0;
	/* Where a file system lacks RENAME_NOREPLACE, a hard link also fails if the name is taken. */
	if (out->force || errno != EINVAL || linkat(out->dir, out->temporary, out->dir, name, 0))
		return -errno;
	unlinkat(out->dir, out->temporary, 0);
	return 0;
}

static int give_name(struct output *out)
{
	char fd[32];
	int ret;

	if (!*out->temporary) {
		snprintf(fd, sizeof(fd), "/proc/self/fd/%d", out->fd);
		if (!linkat(AT_FDCWD, fd, out->dir, name_of(out), AT_SYMLINK_FOLLOW))
			return 0;
		if (errno != EEXIST || !out->force)
			return -errno;
		ret = choose_temporary_name(out);
		if (!ret && linkat(AT_FDCWD, fd, out->dir, out->temporary, AT_SYMLINK_FOLLOW))
			ret = -errno;
		if (ret) {
			*out->temporary = '\0';
			return ret;
		}
	}
	ret = rename_temporary(out);
	if (ret)
		unlinkat(out->dir, out->temporary, 0);
	*out->temporary = '\0';
	return ret;
}

int output__publish(struct output *out, char *err, size_t len)
{
	int ret;

	if (!out->unnamed)
		return 0;
	if (out->force && is_recorded_into(out)) {
		snprintf(err, len, "another sonde is recording to %s; -o names another file", out->path);
		return -EBUSY;
	}
	ret = give_name(out);
	if (ret == -EEXIST)
		snprintf(err, len, "%s exists already; -f replaces it, -o names another", out->path);
	else if (ret)
		snprintf(err, len, "cannot create %s: %s", out->path, strerror(-ret));
	if (ret)
		return ret;
	out->unnamed = false;
	out->created = true;
	return 0;
}

int output__check(const struct output *out, char *err, size_t len)
{
	struct stat st;

	if (!out->created || fstat(out->fd, &st) || st.st_nlink)
		return 0;
	snprintf(err, len, "%s was removed while it was written, and what was recorded is lost", out->path);
	return -ENOENT;
}

void output__close(struct output *out)
{
	if (out->fd > 0)
		close(out->fd);
	if (out->dir > 0)
		close(out->dir);
	out->fd = out->dir = -1;
}

void output__discard(struct output *out)
{
	struct stat st;

	if (*out->temporary)
		unlinkat(out->dir, out->temporary, 0);
	/* A file that another program put at this path is kept. After privileges were dropped, unlinkat() may fail. */
	if (out->created && !fstatat(out->dir, name_of(out), &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == out->dev &&
	    st.st_ino == out->ino && unlinkat(out->dir, name_of(out), 0))
		fprintf(stderr, "sonde: cannot remove the file %s: %s\n", out->path, strerror(errno));
	output__close(out);
}
