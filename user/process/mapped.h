/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens the file behind a mapping, for commands that read a process by themselves; a recording asks its opener. */
#pragma once

#include "process/process.h"

#include <stdbool.h>

/*
 * When the file is opened by its path in the process's root: MAPPED_SAME refuses another file at that path,
 * MAPPED_ANY accepts it.
 */
enum mapped_path { MAPPED_SAME, MAPPED_ANY };

/*
 * Opens the file for reading: through /proc/PID/map_files, so that containers and deleted files work, or, if the
 * capability for that is missing, by its path (MAPPED_SAME: if the inode number is that of the mapping, which it is
 * except on overlayfs). Only regular files are opened. -EREMOTE: the file is on a file system that may not answer
 * (filesystem__remote_file), whose name *remote gets (else NULL), and remote_files is false; or it did not answer.
 */
int mapped__open(const struct mapping *m, enum mapped_path by_path, bool remote_files, const char **remote);
/*
 * As mapped__open, but of a file on a remote file system it returns a copy in memory of at most copy_max bytes (-EFBIG:
 * the file is larger), so that no later call waits for its server.
 */
int mapped__open_copy(const struct mapping *m, enum mapped_path by_path, bool remote_files, u64 copy_max,
		      const char **remote);
/* Opens in the same way the program of a process. */
int mapped__open_program(u32 pid, bool remote_files, const char **remote);
/* Opens in the same way the file at a path in the root of a process; pid 0: as this process sees it. */
int mapped__open_path(u32 pid, const char *path, bool remote_files, const char **remote);
