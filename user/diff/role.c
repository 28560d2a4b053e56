// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff/role.h"

#include <stdio.h>
#include <string.h>

char *role__process(const struct names *n, u32 pid, char *buf, size_t size)
{
	const char *comm = names__comm(n, pid, 0);

	if (!names__script(n, pid, buf, size))
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
