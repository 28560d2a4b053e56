// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file__reopen_regular(int at)
{
	char link[32];
	struct stat st;
	int fd;

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

int file__open_regular(const char *path)
{
	int at = open(path, O_PATH | O_CLOEXEC);

	return at < 0 ? -errno : file__reopen_regular(at);
}

int file__open_trusted(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | flags), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st)						? -errno :
	      !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)		? -EINVAL :
	      (st.st_uid && st.st_uid != geteuid()) || st.st_mode & 022 ? -EPERM :
									  0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

char *file__first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (f && fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
	return buf;
}

bool file__scan(const char *path, int n, const char *format, ...)
{
	FILE *f = fopen(path, "re");
	bool found = false;
	char line[512];
	va_list args;

	while (f && !found && fgets(line, sizeof(line), f)) {
		va_start(args, format);
		found = vsscanf(line, format, args) == n;
		va_end(args);
	}
	if (f)
		fclose(f);
	return found;
}
