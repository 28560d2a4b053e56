// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/ownership.h"

#include "util/array.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_MAX 64 /* libraries that sonde itself maps */
#define MAPPED_MAX 65536 /* files of users that their own processes map */
#define OWNER_MAX  8192 /* of one user; the oldest is evicted, so that no user can evict those of others */

struct ownership {
	bool trusted_files;
	struct inode_note system[SYSTEM_MAX];
	u32 n_system;
	struct inode_note *mapped; /* files mapped by processes of their owners */
	u32 n_mapped;
};

static int add_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct ownership *o = arg;
	struct stat st;

	/* the program itself has an empty name here */
	if (*info->dlpi_name && o->n_system < SYSTEM_MAX && !stat(info->dlpi_name, &st))
		o->system[o->n_system++] = (struct inode_note){ st.st_dev, st.st_ino, st.st_uid };
	return 0;
}

struct ownership *ownership__new(bool trusted_files)
{
	struct ownership *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->trusted_files = trusted_files;
	dl_iterate_phdr(add_loaded, o);
	return o;
}

void ownership__free(struct ownership *o)
{
	if (!o)
		return;
	free(o->mapped);
	free(o);
}

static bool is_in(const struct inode_note *list, u32 n, const struct stat *st)
{
	for (u32 i = 0; i < n; i++)
		if (list[i].ino == st->st_ino && list[i].dev == st->st_dev)
			return true;
	return false;
}

bool ownership__note(int fd, pid_t pid, struct inode_note *out)
{
	struct stat file, process;
	char path[32];

	/* the owner of /proc/PID is the process's effective user, or root if the process may not be traced */
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (fstat(fd, &file) || !file.st_uid || stat(path, &process) || process.st_uid != file.st_uid)
		return false;
	*out = (struct inode_note){ file.st_dev, file.st_ino, file.st_uid };
	return true;
}

/* Evicts the oldest file of an owner who is at the limit. */
static void make_room(struct ownership *o, uid_t owner)
{
	u32 n = 0, oldest = 0;

	for (u32 i = o->n_mapped; i--;)
		if (o->mapped[i].owner == owner) {
			oldest = i;
			n++;
		}
	if (n == OWNER_MAX) {
		o->n_mapped--;
		memmove(o->mapped + oldest, o->mapped + oldest + 1, (o->n_mapped - oldest) * sizeof(*o->mapped));
	}
}

void ownership__add(struct ownership *o, const struct inode_note *note)
{
	const struct stat file = { .st_dev = note->dev, .st_ino = note->ino };

	if (!o->trusted_files || is_in(o->mapped, o->n_mapped, &file))
		return;
	make_room(o, note->owner);
	if (o->n_mapped == MAPPED_MAX)
		return;
	if (!array__push(o->mapped, o->n_mapped, *note))
		return;
}

int ownership__check(const struct ownership *o, int fd, bool site)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_mode & S_ISUID || (st.st_mode & S_ISGID && st.st_mode & S_IXGRP))
		return -EPERM;
	if (site && is_in(o->system, o->n_system, &st))
		return -EPERM;
	if (o->trusted_files && st.st_uid && !is_in(o->mapped, o->n_mapped, &st))
		return -EACCES;
	return 0;
}
