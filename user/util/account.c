// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/account.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"

struct subordinates {
	char name[64]; /* or the number, of the owner */
	uid_t owner; /* 0: not known, or root: what its containers do is not trusted as root is */
	u64 first, n;
};

static struct {
	struct subordinates *list;
	u32 n;
	bool is_loaded;
} all;

/* Only /etc/passwd is asked: a directory service may not answer. */
static void name_owners(void)
{
	struct passwd *user;
	FILE *f = fopen("/etc/passwd", "re");
	char number[16];

	while (f && (user = fgetpwent(f)) != NULL) {
		snprintf(number, sizeof(number), "%u", user->pw_uid);
		for (u32 i = 0; i < all.n; i++)
			if (!strcmp(all.list[i].name, user->pw_name) || !strcmp(all.list[i].name, number))
				all.list[i].owner = user->pw_uid;
	}
	if (f)
		fclose(f);
}

void account__load(void)
{
	char line[512];
	struct subordinates s = { .owner = 0 };
	FILE *f = all.is_loaded ? NULL : fopen("/etc/subuid", "re");

	all.is_loaded = true;
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63[^:#]:%llu:%llu", s.name, &s.first, &s.n) == 3 && !array__push(all.list, all.n, s))
			break;
	fclose(f);
	name_owners();
}

uid_t account__owner(uid_t uid)
{
	account__load();
	for (u32 i = 0; uid && i < all.n; i++)
		if (all.list[i].owner && uid - all.list[i].first < all.list[i].n)
			return all.list[i].owner;
	return uid;
}

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
	*uid = account__owner(maker ? maker : st.st_uid);
	return true;
}
