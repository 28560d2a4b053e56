// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int file__open_regular(const char *path)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd;
	char link[32];
	struct stat st;

	if (at < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	if (fstat(at, &st))
		fd = -errno;
	else if (!S_ISREG(st.st_mode))
		fd = -EINVAL;
	else if ((fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		fd = -errno;
	close(at);
	return fd;
}
