/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The container and the pod of a process, by the names that container runtimes give to cgroups. */
#pragma once

#include "core/types.h"

struct container {
	char name[64]; /* "docker-0123456789ab": the runtime, if the path has it, and the start of the id */
	char pod[40]; /* uid of the Kubernetes pod */
};

/* path: as in /proc/PID/cgroup. Empty texts: none. */
void container__parse(struct container *out, const char *path);
/*
 * Parses the text of /proc/PID/cgroup. buf gets the most informative path: one that names a container, else that of
 * cgroup v2, of systemd, or the longest.
 */
void container__read(struct container *out, const char *text, char *buf, size_t size);
