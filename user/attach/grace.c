// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/grace.h"

#include <fcntl.h>
#include <unistd.h>

int grace__open(void)
{
	return open("/sys/kernel/rcu_expedited", O_RDWR | O_CLOEXEC);
}

bool grace__shorten(int fd)
{
	char value;

	return fd >= 0 && pread(fd, &value, 1, 0) == 1 && value == '0' && pwrite(fd, "1", 1, 0) == 1;
}

void grace__restore(int fd)
{
	/* what refuses a 0 after it took a 1 leaves nothing to do */
	if (pwrite(fd, "0", 1, 0) != 1)
		return;
}
