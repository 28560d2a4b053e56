// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an interpreter runs says more than its own name: "train.py" of `python3 -u train.py`. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/names_private.h"
#include "util/array.h"
#include "util/path.h"
#include "util/utf8.h"

/* Programs that run the file named by their first argument that is not an option. */
static bool is_interpreter(const char *name, size_t len)
{
	static const char *const list[] = { "python", "pypy", "sh", "bash", "dash", "perl", "ruby", "node", "java" };

	/* "python3.13" */
	while (len && (isdigit((unsigned char)name[len - 1]) || name[len - 1] == '.'))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (strlen(list[i]) == len && !strncmp(name, list[i], len))
			return true;
	return false;
}

/* The part of a path after its last slash; the path ends at `end`. */
static const char *base_of(const char *text, const char *end)
{
	const char *base = text;

	for (; text < end; text++)
		if (*text == '/' && text + 1 < end)
			base = text + 1;
	return base;
}

/*
 * Sets [*from, *to) to the next argument of a command line, after the one that ends at *to. An argument with blanks is
 * in quotes. false: there is none.
 */
static bool next_argument(const char **from, const char **to)
{
	*from = *to + strspn(*to, "' ");
	*to = *from + strcspn(*from, *from > *to && (*from)[-1] == '\'' ? "'" : " ");
	return *from < *to;
}

/* Writes the file name of the script, or the module, that an interpreter runs. false: the command line names none. */
static bool script_of(const char *command, char *buf, size_t size)
{
	const char *from, *to = command, *base;

	if (!next_argument(&from, &to))
		return false;
	base = base_of(from, to);
	if (!is_interpreter(base, (size_t)(to - base)))
		return false;
	while (next_argument(&from, &to)) {
		bool is_module = to - from == 2 && !strncmp(from, "-m", 2);

		if (to - from == 2 && !strncmp(from, "-c", 2))
			return false;
		if (*from == '-' && !is_module) {
			/* options of Python whose value is the next argument */
			if (to - from == 2 && (from[1] == 'W' || from[1] == 'X') && !next_argument(&from, &to))
				return false;
			continue;
		}
		if (is_module && !next_argument(&from, &to))
			return false;
		base = is_module ? from : base_of(from, to);
		snprintf(buf, size, "%.*s", (int)(to - base), base);
		return true;
	}
	return false;
}

static const struct named_task *imaged(const struct names *n, u32 pid)
{
	return names__imaged(n, names__find(n, pid, 0));
}

bool names__script(const struct names *n, u32 pid, char *buf, size_t size)
{
	const struct named_task *t = imaged(n, pid);
	const char *script = t ? names__string(n, t->task.script) : "";

	if (t && script_of(names__string(n, t->task.command), buf, size))
		return true;
	utf8__copy(buf, size, path__file_name(script));
	return *buf;
}

/* Is it the name of an interpreter, or of a program with one in it which has not named itself? */
static bool is_replaced(const struct names *n, u32 pid, const char *comm)
{
	const struct named_task *t = imaged(n, pid);
	const char *exe = t && t->task.script ? path__file_name(names__string(n, t->task.exe)) : "";
	size_t len = strlen(comm);

	if (path__begins_with(comm, "python") || is_interpreter(comm, len))
		return true;
	/* the kernel has the first 15 bytes of the file's name; the file may have been deleted or replaced */
	return len && path__begins_with(exe, comm) &&
	       (len == sizeof(t->task.comm) - 1 || !exe[len] || !strcmp(exe + len, " (deleted)"));
}

const char *names__cgroup(const struct names *n, u32 pid)
{
	const struct named_task *t = imaged(n, pid);

	return t ? names__string(n, t->task.cgroup) : "";
}

/* Services of the system; a user's session and what it runs are in its slice. */
#define SYSTEM_SLICE "/system.slice/"

char *names__service(const struct names *n, char *buf, size_t size, u32 pid)
{
	const char *container, *pod, *path = names__cgroup(n, pid), *name;

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

/*
 * Writes the whole of a title that a process gave itself (setproctitle), such as "gunicorn: master [app:app]": the
 * kernel's name has its first 15 bytes, and its command line begins with it. Names of files seldom have a blank.
 */
static bool own_title(const struct names *n, u32 pid, const char *comm, char *buf, size_t size)
{
	const struct named_task *t = names__find(n, pid, 0);
	const char *command = t ? names__string(n, t->task.command) : "";

	if (strlen(comm) < sizeof(t->task.comm) - 1 || !strchr(comm, ' ') || !path__begins_with(command, comm))
		return false;
	utf8__copy(buf, size, command);
	return true;
}

const char *names__title(const struct names *n, char *buf, size_t size, u32 pid, u32 tid)
{
	const char *comm = names__comm(n, pid, tid);

	if (!comm)
		return NULL;
	if (!own_title(n, pid, comm, buf, size) && (!is_replaced(n, pid, comm) || !names__script(n, pid, buf, size)))
		utf8__copy(buf, size, comm);
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
