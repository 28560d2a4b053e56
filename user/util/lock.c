// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/run/sonde"

int lock__open(void)
{
	struct stat st;
	int dir, fd;

	if (geteuid())
		return -EPERM;
	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		return -errno;
	dir = open(FOLDER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (fstat(dir, &st) || st.st_uid || st.st_mode & 077)
		fd = -EPERM;
	else if ((fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		fd = -errno;
	close(dir);
	return fd;
}

bool lock__take(int fd, off_t at)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return !fcntl(fd, F_OFD_SETLK, &lock);
}
