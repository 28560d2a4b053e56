// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/sanitizer.h"

/* linux/mount.h, whose definitions conflict with sys/mount.h in some C libraries */
#define ATTR_RDONLY 1
struct attributes {
	unsigned long long set, clear, propagation, user_namespace;
};

#define FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static void note_failure(char *lacks, size_t len, const char *what)
{
	size_t used = strlen(lacks);

	snprintf(lacks + used, len - used, "%s%s (%s)", used ? "; " : "", what, strerror(errno));
}

/*
 * Makes an empty file system with /proc in it. hidepid=ptraceable shows a process only to those who may trace it,
 * subset=pid shows only processes; both exist since Linux 5.8.
 */
static int make_root(void)
{
	/* an existing folder as the mount point: its contents are hidden in this namespace */
	static const char at[] = "/proc";

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sonde", at, "tmpfs", FLAGS, "size=4k,nr_inodes=4,mode=0555") || chdir(at) || mkdir("proc", 0555) ||
	    mount("proc", "proc", "proc", FLAGS | MS_RDONLY, "hidepid=ptraceable,subset=pid") ||
	    mount(NULL, ".", NULL, MS_REMOUNT | MS_RDONLY | FLAGS, NULL))
		return -errno;
	return 0;
}

/* The kernel refuses pivot_root() if the root is that of the initial RAM disk. */
static int enter_root(void)
{
	if (!syscall(SYS_pivot_root, ".", "."))
		return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
	return chroot(".") || chdir("/") ? -errno : 0;
}

static int protect_root(void)
{
	struct attributes attr = { .set = ATTR_RDONLY };

	return syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) ? -errno : 0;
}

static void leave_files(char *lacks, size_t len)
{
	if (unshare(CLONE_NEWNS)) {
		note_failure(lacks, len, "it sees the host's files");
		return;
	}
	if (make_root() || enter_root()) {
		note_failure(lacks, len, "it sees the host's files");
		protect_root();
	}
}

void namespaces__leave(char *lacks, size_t len)
{
	if (unshare(CLONE_NEWNET))
		note_failure(lacks, len, "it is in the host's network");
	if (unshare(CLONE_NEWIPC) && errno != EINVAL)
		note_failure(lacks, len, "it is among the host's IPC objects");
	if (!SANITIZED)
		leave_files(lacks, len);
}
