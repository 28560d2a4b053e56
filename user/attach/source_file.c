// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The kernel decides whether this process may open a file, not whether another process may. So the permissions of each
 * inode on the path are compared with the other process's user and groups here. The inodes are held open meanwhile, so
 * it does not matter whether the process renames or replaces them.
 */
#include "attach/source_file.h"

#include "util/source_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define STATUS_MAX (128 * 1024) /* of /proc/PID/status, which has one line with all groups */

struct reader {
	char *status;
	uid_t uid; /* with which the process accesses files */
	gid_t gid;
	walk_visit *may_visit;
	void *arg;
};

/* Returns the numbers of a line of /proc/PID/status; NULL: it has no such line, or not all of it was read. */
static const char *status_line(const struct reader *r, const char *name)
{
	const char *at = strstr(r->status, name);

	return at && strchr(at + 1, '\n') ? at + strlen(name) : NULL;
}

static int read_status(struct reader *r, int dir)
{
	int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	const char *uids, *gids;
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	r->status = malloc(STATUS_MAX);
	while (r->status && (n = read(fd, r->status + used, STATUS_MAX - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	if (!r->status)
		return -ENOMEM;
	r->status[used] = '\0';
	uids = status_line(r, "\nUid:");
	gids = status_line(r, "\nGid:");
	/* real, effective, saved, for files */
	if (!uids || !gids || sscanf(uids, "%*u %*u %*u %u", &r->uid) != 1 ||
	    sscanf(gids, "%*u %*u %*u %u", &r->gid) != 1)
		return -ESRCH;
	return 0;
}

static bool is_in_group(const struct reader *r, gid_t gid)
{
	const char *at = status_line(r, "\nGroups:");
	char *end;

	if (gid == r->gid)
		return true;
	for (; at && *at != '\n'; at = end + strspn(end, " \t")) {
		unsigned long group = strtoul(at, &end, 10);

		if (end == at)
			return false;
		if (group == gid)
			return true;
	}
	return false;
}

/* An access control list may refuse what the permissions grant. In case of doubt there is one. */
static bool has_acl(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

/* bit: S_IROTH or S_IXOTH */
static bool may(const struct reader *r, int fd, const struct stat *st, mode_t bit)
{
	if (st->st_uid == r->uid)
		return st->st_mode & (bit << 6);
	return !has_acl(fd) && st->st_mode & (is_in_group(r, st->st_gid) ? bit << 3 : bit);
}

/* The last name counts, not that of a link: so a process can't name a file such as a key. */
static int visit(int fd, const char *name, void *arg)
{
	const struct reader *r = arg;
	int err = r->may_visit(fd, name, r->arg);
	struct stat st;

	if (err)
		return err;
	if (fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return may(r, fd, &st, S_IXOTH) ? 0 : -EACCES;
	return S_ISREG(st.st_mode) && source_path__is_source(name) && may(r, fd, &st, S_IROTH) ? 0 : -EACCES;
}

static int open_below(const struct reader *r, int dir, const char *file)
{
	int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), path_fd, fd;
	char path[32];

	/* a process that has ended, but was not waited for, has no root */
	if (root < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	path_fd = walk__below(root, file, visit, (void *)r);
	close(root);
	if (path_fd < 0)
		return path_fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	fd = fd < 0 ? -errno : fd;
	close(path_fd);
	return fd;
}

int source_file__open(pid_t pid, const char *path, walk_visit *may_visit, void *arg)
{
	struct reader r = { .may_visit = may_visit, .arg = arg };
	char proc[32];
	int dir, fd;

	if (*path != '/')
		return -EACCES;
	/* the open directory protects against a reused pid */
	snprintf(proc, sizeof(proc), "/proc/%d", pid);
	dir = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -ESRCH;
	fd = read_status(&r, dir);
	if (!fd)
		fd = open_below(&r, dir, path);
	free(r.status);
	close(dir);
	return fd;
}

struct birth {
	pid_t parent;
	u64 ticks; /* since the system's start */
	u64 stack; /* where its stack begins: a random address for each exec; 0: not known */
};

static bool read_birth(pid_t pid, struct birth *b)
{
	char path[32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* the name before may contain anything; fields 4, 22 and 28 of proc_pid_stat(5) */
	at = strrchr(text, ')');
	return at && sscanf(at,
			    ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu %*u %*d "
			    "%*u %*u %*u %llu",
			    &b->parent, &b->ticks, &b->stack) == 3;
}

#define FORKS_MAX 64

/*
 * Returns when the process's program was started, CLOCK_REALTIME ns; 0: not known. A process that was forked and runs
 * no other program has the code that the process before it had loaded.
 */
static u64 program_start(pid_t pid)
{
	u64 hz = (u64)sysconf(_SC_CLK_TCK);
	struct timespec real, boot;
	struct birth b, parent;

	if (!read_birth(pid, &b))
		return 0;
	for (int i = 0; i < FORKS_MAX && b.stack && read_birth(b.parent, &parent) && parent.stack == b.stack; i++)
		b = parent;
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (u64)(real.tv_sec - boot.tv_sec) * 1000000000 + (u64)real.tv_nsec - (u64)boot.tv_nsec +
	       b.ticks * 1000000000 / hz;
}

static u64 ns_of(struct timespec t)
{
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

int source_file__check(int fd, pid_t pid, u64 built)
{
	/* the kernel cuts the start to whole ticks */
	u64 start = program_start(pid), tick = 1000000000 / (u64)sysconf(_SC_CLK_TCK);
	struct stat st;

	if (!start)
		return -ESRCH;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > SOURCE_FILE_MAX)
		return -EFBIG;
	if (built && ns_of(st.st_mtim) > built)
		return -ESTALE;
	/* unlike the time of the last write, no program can set this one back */
	return ns_of(st.st_ctim) <= start + tick ? 0 : -ESTALE;
}
