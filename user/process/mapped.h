/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file behind a mapping, for commands that look at a process themselves; a recording asks its opener. */
#ifndef SONDE_PROCESS_MAPPED_H
#define SONDE_PROCESS_MAPPED_H

#include "process/process.h"

#include <stdbool.h>

/* Where it is opened by its path, in the process's root: is another file at that path refused, too? */
enum mapped_path { MAPPED_SAME, MAPPED_ANY };

/*
 * Opens it for reading: through /proc/PID/map_files, so that containers and deleted files work, or, where that takes a
 * capability, by its path (MAPPED_SAME: if it has the inode number of the mapping, as it has but on overlayfs). Only a
 * regular file is opened. -EREMOTE: it lies on a file system that is served remotely, which *remote then names (else NULL),
 * and remote_files is false.
 */
int mapped__open(const struct mapping *m, enum mapped_path by_path, bool remote_files, const char **remote);

#endif
