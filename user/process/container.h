/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which container and pod a process is in, by the names that runtimes give their cgroups. */
#ifndef SONDE_PROCESS_CONTAINER_H
#define SONDE_PROCESS_CONTAINER_H

#include "core/types.h"

struct container {
	char name[64]; /* "docker-0123456789ab": the runtime, where the path says it, and the start of the id */
	char pod[40]; /* uid of the Kubernetes pod */
};

/* path: as /proc/PID/cgroup has it. Empty texts: none. */
void container__parse(struct container *out, const char *path);
/*
 * The text of /proc/PID/cgroup: the path, in buf, that says most: one that names
 * a container, else that of cgroup v2, of systemd, or the longest.
 */
void container__read(struct container *out, const char *text, char *buf, size_t size);

#endif
