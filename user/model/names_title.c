// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an interpreter runs says more than its own name: "train.py" of `python3 -u train.py`. */
#include <stdio.h>
#include <string.h>

#include "model/names_private.h"
#include "util/path.h"

#define PARENTS_MAX 8

/* The next argument of a command line, whose arguments are separated by blanks; "" at its end. */
static const char *next_argument(const char **line, char *buf, size_t size)
{
	size_t len;

	*line += strspn(*line, " ");
	len = strcspn(*line, " ");
	snprintf(buf, size, "%.*s", (int)len, *line);
	*line += len;
	return buf;
}

/* "" if it is neither a script nor a module */
static const char *script_of(const char *line, char *buf, size_t size)
{
	const char *name;

	next_argument(&line, buf, size);
	while (*next_argument(&line, buf, size)) {
		if (!strcmp(buf, "-m"))
			return next_argument(&line, buf, size);
		if (!strcmp(buf, "-c"))
			break;
		if (*buf != '-') {
			name = path__file_name(buf);
			memmove(buf, name, strlen(name) + 1);
			return buf;
		}
		if (!strcmp(buf, "-W") || !strcmp(buf, "-X"))
			next_argument(&line, buf, size);
	}
	return strcpy(buf, "");
}

/* The process, or the one that it was forked by, whose program is known; NULL: none */
static const struct named_task *imaged(const struct names *n, u32 pid)
{
	const struct named_task *t = names__find(n, pid, 0);

	for (u32 i = 0; i < PARENTS_MAX && t && !t->imaged && t->task.ppid; i++)
		t = names__find(n, t->task.ppid, 0);
	return t;
}

static const char *command_of(const struct names *n, u32 pid)
{
	const struct named_task *t = imaged(n, pid);

	return t ? names__string(n, t->task.command) : "";
}

/* Services of the system; a user's session and what it runs are in its slice. */
#define SYSTEM_SLICE "/system.slice/"

char *names__service(const struct names *n, char *buf, size_t size, u32 pid)
{
	const struct named_task *t = imaged(n, pid);
	const char *container, *pod, *path = t ? names__string(n, t->task.cgroup) : "", *name;

	names__container(n, pid, &container, &pod);
	snprintf(buf, size, "%s", container);
	name = strstr(path, SYSTEM_SLICE);
	if (*container || !name)
		return buf;
	name += strlen(SYSTEM_SLICE);
	snprintf(buf, size, "%.*s", (int)strcspn(name, "/"), name);
	if (!strstr(buf, ".service"))
		*buf = '\0';
	return buf;
}

const char *names__title(const struct names *n, char *buf, size_t size, u32 pid, u32 tid)
{
	const char *comm = names__comm(n, pid, tid);
	char script[256];

	if (!comm)
		return NULL;
	*script = '\0';
	if (!strncmp(comm, "python", 6))
		script_of(command_of(n, pid), script, sizeof(script));
	snprintf(buf, size, "%s", *script ? script : comm);
	return buf;
}

const char *names__rank_title(const struct names *n, char *buf, size_t size, u32 pid)
{
	const struct task *t = names__task(n, pid, 0);
	char room[256];
	const char *title = names__title(n, room, sizeof(room), pid, 0);

	if (!t || !t->world_size)
		return NULL;
	snprintf(buf, size, "rank %u: %s", t->rank, title ?: "?");
	return buf;
}

/* Ranks are below it (user/process/rank.h); those of a foreign trace may not be. */
#define RANKS (1 << 24)

s64 names__rank_order(const struct names *n, u32 pid)
{
	const struct task *t = names__task(n, pid, 0);

	return t && t->world_size && t->rank < RANKS ? (s64)t->rank - RANKS : 0;
}
