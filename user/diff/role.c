// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff/role.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"

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

/* The part of a path after its last slash; the text ends at `end`. */
static const char *base_of(const char *text, const char *end)
{
	const char *base = text;

	for (; text < end; text++)
		if (*text == '/' && text + 1 < end)
			base = text + 1;
	return base;
}

/* Sets [*from, *to) to the next argument of a command line, after the one that ends at *to. false: there is none. */
static bool next(const char **from, const char **to)
{
	*from = *to + strspn(*to, " ");
	*to = *from + strcspn(*from, " ");
	return *from < *to;
}

/* Writes the file name of the script, or the module, that an interpreter runs. false: the command line names none. */
static bool script(const char *command, char *buf, size_t size)
{
	const char *from, *to = command, *base;

	if (!next(&from, &to))
		return false;
	base = base_of(from, to);
	if (!is_interpreter(base, (size_t)(to - base)))
		return false;
	while (next(&from, &to)) {
		bool is_module = to - from == 2 && !strncmp(from, "-m", 2);

		if (to - from == 2 && !strncmp(from, "-c", 2))
			return false;
		if (*from == '-' && !is_module)
			continue;
		if (is_module && !next(&from, &to))
			return false;
		base = is_module ? from : base_of(from, to);
		snprintf(buf, size, "%.*s", (int)(to - base), base);
		return true;
	}
	return false;
}

/* The command line of a process. A process that was forked and executed nothing has that of its parent. */
static const char *command_of(const struct names *n, u32 pid)
{
	const struct task *t = names__task(n, pid, 0);

	/* a damaged trace may contain a cycle */
	for (int i = 0; i < 16 && t && !t->command && !t->exe && t->ppid; i++)
		t = names__process_at(n, t->ppid, t->start);
	return t ? names__string(n, t->command) : "";
}

char *role__process(const struct names *n, u32 pid, char *buf, size_t size)
{
	const char *comm = names__comm(n, pid, 0);

	if (!script(command_of(n, pid), buf, size))
		snprintf(buf, size, "%s", comm && *comm ? comm : "unnamed process");
	return buf;
}

char *role__thread(const struct names *n, u32 pid, u32 tid, char *buf, size_t size)
{
	const char *comm = names__comm(n, pid, tid), *process = names__comm(n, pid, 0);
	size_t len = comm ? strlen(comm) : 0;

	while (len && strchr("0123456789-_#:/ ", comm[len - 1]))
		len--;
	if (names__number(n, tid) == names__number(n, pid))
		snprintf(buf, size, "main thread");
	else if (!len || (process && !strcmp(comm, process)))
		snprintf(buf, size, "other threads");
	else
		snprintf(buf, size, "threads %.*s", (int)len, comm);
	return buf;
}
