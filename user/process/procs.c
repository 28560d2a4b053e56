// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/procs.h"

#include "sandbox/bounded.h"
#include "util/file.h"

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
	m->path = line + path;
	m->dev = ((u64)maj << 20) | min;
	return true;
}

/* In a child: keeps the lines of executable mappings of files. */
static int read_lines(const void *arg, struct bounded_reply *reply)
{
	char name[64], perms[5], *line = NULL;
	size_t size = 0;
	ssize_t n;
	FILE *f;
	int err;

	snprintf(name, sizeof(name), "/proc/%u/maps", procs__shown_as(*(const u32 *)arg));
	f = fopen(name, "re");
	if (!f)
		return -errno;
	errno = 0;
	while ((n = getline(&line, &size, f)) > 0)
		if (sscanf(line, "%*s %4s", perms) == 1 && perms[2] == 'x' && strchr(line, '/') &&
		    !bounded__add(reply, line, (size_t)n))
			break;
	err = errno == EACCES || errno == EPERM ? -errno : 0;
	free(line);
	fclose(f);
	return err;
}

int procs__each_mapping_of(u32 pid, void (*fn)(const struct mapping *m, void *arg), void *arg)
{
	struct bounded_reply reply;
	int err = bounded__call(pid, read_lines, &pid, sizeof(pid), &reply);
	struct mapping m;

	for (char *line = reply.bytes, *end; line && line < reply.bytes + reply.n; line = end + 1) {
		end = memchr(line, '\n', reply.bytes + reply.n - line);
		if (!end)
			break;
		*end = '\0';
		if (parse(line, pid, &m))
			fn(&m, arg);
	}
	free(reply.bytes);
	return err;
}

int procs__each_mapping(void (*fn)(const struct mapping *m, void *arg), void *arg, struct procs_unread *unread)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	*unread = (struct procs_unread){};

	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		u32 pid = (u32)atoi(d->d_name);
		int err;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		err = procs__each_mapping_of(pid, fn, arg);
		unread->refused += err == -EACCES || err == -EPERM;
		if (err == -ETIMEDOUT && !unread->late++)
			unread->first_late = pid;
	}
	closedir(dir);
	return 0;
}

u64 procs__status(u32 pid, const char *format)
{
	char path[32];
	u64 value = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file__scan(path, 1, format, &value);
	return value;
}

char procs__state(u32 pid)
{
	char path[32], state = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file__scan(path, 1, "State: %c", &state);
	return state;
}

u32 procs__shown_as(u32 pid)
{
	u32 thread = pid;
	struct dirent *d;
	char path[32];
	DIR *dir;

	if (procs__state(pid) != 'Z')
		return pid;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && thread == pid && (d = readdir(dir))) {
		u32 tid = (u32)atoi(d->d_name);
		char state = tid ? procs__state(tid) : 'Z';

		if (state && state != 'Z' && state != 'X')
			thread = tid;
	}
	if (dir)
		closedir(dir);
	return thread;
}

const char *procs__gone(u32 pid, char *text, size_t len)
{
	if (procs__state(pid) == 'Z')
		snprintf(text, len, "process %u has ended: it is a zombie, for which its parent %llu has not waited",
			 pid, procs__status(pid, "PPid: %llu"));
	else
		snprintf(text, len, "there is no process %u", pid);
	return text;
}
