/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A cgroup that --cgroup names: which one the kernel knows it as. */
#ifndef SONDE_RECORD_CGROUP_H
#define SONDE_RECORD_CGROUP_H

#include "core/types.h"

struct cgroup_place {
	char path[4096]; /* its directory */
	u64 id; /* the kernel's, within its hierarchy */
	u32 hierarchy; /* 0: cgroup v2 */
};

/*
 * word: a directory of a cgroup file system, or a path below the cgroup v2 mount
 * as /proc/PID/cgroup shows it. 0 or negative errno with a message.
 */
int cgroup__find(struct cgroup_place *out, const char *word, char *err, size_t len);
/* Calls fn with each process that is in it or below it. */
void cgroup__each_process(const struct cgroup_place *c, void (*fn)(u32 pid, void *arg), void *arg);

#endif
