// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/account.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user who made the outermost user namespace of a process below the first one; 0: root, or there is none. */
static uid_t namespace_maker(u32 pid)
{
	uid_t maker = 0, owner;
	char path[48];
	int ns, parent;

	snprintf(path, sizeof(path), "/proc/%u/ns/user", pid);
	for (ns = open(path, O_RDONLY | O_CLOEXEC); ns >= 0; ns = parent) {
		parent = ioctl(ns, NS_GET_PARENT);
		if (parent >= 0 && !ioctl(ns, NS_GET_OWNER_UID, &owner))
			maker = owner;
		close(ns);
	}
	return maker;
}

bool account__of(u32 pid, uid_t *uid)
{
	char path[32];
	struct stat st;
	uid_t maker;

	/* the owner of a /proc/PID that is world-readable is the effective user, even if it may not be traced */
	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st))
		return false;
	maker = namespace_maker(pid);
	*uid = maker ? maker : st.st_uid;
	return true;
}
