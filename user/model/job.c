// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/job.h"

#include <string.h>

#include "util/compare.h"

/* Returns the length of the path without a last component "task_3". */
static size_t job_length(const char *cgroup)
{
	static const char task[] = "/task_";
	const char *last = strrchr(cgroup, '/');
	size_t digits;

	if (!last || strncmp(last, task, sizeof(task) - 1))
		return strlen(cgroup);
	digits = strspn(last + sizeof(task) - 1, "0123456789");
	return digits && !last[sizeof(task) - 1 + digits] ? (size_t)(last - cgroup) : strlen(cgroup);
}

static int compare_cgroup(const char *a, const char *b)
{
	size_t x = job_length(a), y = job_length(b);
	int order = memcmp(a, b, x < y ? x : y);

	return order ? order : COMPARE(x, y);
}

int job__compare(const struct names *n, u32 a, u32 b)
{
	int order = COMPARE(names__user(n, a), names__user(n, b));

	if (order || names__machine(n, a) || names__machine(n, b))
		return order;
	return compare_cgroup(names__cgroup(n, a), names__cgroup(n, b));
}
