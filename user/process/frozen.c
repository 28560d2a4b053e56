// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/frozen.h"

#include "util/file.h"

#include <stdio.h>
#include <string.h>

bool process__is_frozen(u32 pid, char *cgroup, size_t len)
{
	char path[1024], name[512] = "", mount[256], options[8];
	unsigned int frozen = 0;

	*cgroup = '\0';
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	/* a path with ".." leads out of this cgroup namespace */
	if (!file__scan(path, 1, "0::%511[^\n]", name) || strstr(name, "/..") ||
	    !file__scan("/proc/mounts", 2, "%*s %255s cgroup2 %7s", mount, options))
		return false;
	snprintf(path, sizeof(path), "%s%s/cgroup.events", mount, name);
	if (!file__scan(path, 1, "frozen %u", &frozen) || !frozen)
		return false;
	snprintf(cgroup, len, "%s", name);
	return true;
}
