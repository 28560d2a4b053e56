// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/procs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "START-END r-xp OFFSET MAJ:MIN INODE PATH" */
static bool parse(char *line, u32 pid, struct mapping *m)
{
	unsigned int maj, min;
	char perms[5];
	int path = 0;

	*m = (struct mapping){ .pid = pid };
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &m->start, &m->end, perms, &m->offset, &maj, &min, &m->ino,
		   &path) < 7 ||
	    !path || perms[2] != 'x' || line[path] != '/')
		return false;
	line[strcspn(line, "\n")] = '\0';
	m->path = line + path;
	m->dev = ((u64)maj << 20) | min;
	return true;
}

int procs__each_mapping_of(u32 pid, void (*fn)(const struct mapping *m, void *arg), void *arg)
{
	char name[64], *line = NULL;
	struct mapping m;
	size_t size = 0;
	int err = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	errno = 0;
	while (getline(&line, &size, f) > 0)
		if (parse(line, pid, &m))
			fn(&m, arg);
	if (errno == EACCES || errno == EPERM)
		err = -errno;
	free(line);
	fclose(f);
	return err;
}

int procs__each_mapping(void (*fn)(const struct mapping *m, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int unread = 0;

	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		int err;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		err = procs__each_mapping_of(atoi(d->d_name), fn, arg);
		unread += err == -EACCES || err == -EPERM;
	}
	closedir(dir);
	return unread;
}
