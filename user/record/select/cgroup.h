/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A cgroup that --cgroup names: its id in the kernel. */
#pragma once

#include "core/types.h"

struct cgroup_ref {
	char path[4096]; /* its directory */
	u64 id; /* the kernel's id, unique in its hierarchy */
	u32 hierarchy; /* 0: cgroup v2 */
};

/*
 * argument: a directory of a cgroup file system, or a path below the cgroup v2 mount as shown by /proc/PID/cgroup.
 * Returns 0 or negative errno with a message.
 */
int cgroup__find(struct cgroup_ref *out, const char *argument, char *err, size_t len);
/* Calls fn with each process that is in this cgroup or below it. */
void cgroup__each_process(const struct cgroup_ref *c, void (*fn)(u32 pid, void *arg), void *arg);
