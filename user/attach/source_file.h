/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens source files that a process names, for the opener (attach/opener.h), which may read any file. The process
 * chooses the name, so a file is opened only if the process itself could read it.
 */
#pragma once

#include "core/types.h"
#include "util/walk.h"

#include <sys/types.h>

#define SOURCE_FILE_MAX (1 << 20) /* bytes */

/*
 * Opens an absolute path below the process's root. -EACCES: it is no regular file that is named as a source file, or
 * the process may not read it by its user and groups; capabilities do not count. may_visit: see trusted__find().
 */
int source_file__open(pid_t pid, const char *path, walk_visit *may_visit, void *arg);
/*
 * Returns 0 if the file is as it was when the process's program was started; -ESTALE: it was changed later, so the code
 * may be of another text. built: when the code was compiled, CLOCK_REALTIME ns; -ESTALE if the file was written later;
 * 0: the process compiles it. -EFBIG: it is too large.
 */
int source_file__check(int fd, pid_t pid, u64 built);
