/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Executable file mappings as the kernel knows them: with the backing inode, which /proc/PID/maps hides on overlayfs. */
#ifndef SONDE_ATTACH_VMAS_H
#define SONDE_ATTACH_VMAS_H

#include "attach/attacher.h"

/*
 * Calls fn for each executable mapping of a file; pid 0: of every process.
 * p is core_vmas. 0 or negative errno.
 */
int vmas__scan(struct attacher *a, const struct program *p, u32 pid, void (*fn)(const struct mapping *m, void *arg),
	       void *arg);

/* Runs an iterator program, over one process's tasks or (pid 0) all; its whole output, malloc'ed. 0 or negative errno. */
int iter__read_all(struct attacher *a, const struct program *p, u32 pid, char **out, size_t *len);

#endif
