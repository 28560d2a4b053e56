/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens source files that a process names, for the opener (attach/opener.h), which may read any file. The process
 * chooses the name, so a file is opened only if the process itself could read it.
 */
#pragma once

#include "util/walk.h"

#include <sys/types.h>

#define SOURCE_FILE_MAX (1 << 20) /* bytes */

/*
 * Opens an absolute path below the process's root. -EACCES: it is no regular file whose own name ends with ".py", or
 * the process may not read it by its user and groups; capabilities do not count. may_visit: see trusted__find().
 */
int source_file__open(pid_t pid, const char *path, walk_visit *may_visit, void *arg);
/*
 * Returns 0 if the file is as it was when the process's program was started; -ESTALE: it was changed later, so the code
 * may be of another text. -EFBIG: it is too large.
 */
int source_file__check(int fd, pid_t pid);
