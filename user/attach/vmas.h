/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executable file mappings from the kernel's own data: with the backing inode, which /proc/PID/maps hides on
 * overlayfs.
 */
#pragma once

#include "attach/attacher.h"

/*
 * Calls fn for each executable file mapping of a process; pid 0: of every process. p is core_vmas. Returns 0 or
 * negative errno.
 */
int vmas__scan(struct attacher *a, const struct program *p, u32 pid, void (*fn)(const struct mapping *m, void *arg),
	       void *arg);

/*
 * Runs an iterator program over the tasks of one process or (pid 0) of all; returns its whole output, malloc'ed.
 * Returns 0 or negative errno.
 */
int iter__read_all(struct attacher *a, const struct program *p, u32 pid, char **out, size_t *len);
