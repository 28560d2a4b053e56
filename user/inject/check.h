/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes nothing can be loaded into, and why, from /proc and the mapped files. */
#pragma once

#include "inject/space.h"

/* Makes a text of the target printable, in place: control characters, and everything that is not ASCII, become '?'. */
void check__plain(char *text);
/* Returns 0, -ESRCH (there is no such process) or -ENOTSUP with the reason (of size len). */
int check__process(u32 pid, bool remote_files, char *why, size_t len);
/* The same for its mapped files: a C library with which the shim works. */
int check__libraries(struct space *s, const char *shim, char *why, size_t len);
/* The largest file that the process may write, in bytes: RLIMIT_FSIZE. */
u64 check__file_limit(u32 pid);
/* An environment variable with which the process was started; "": not set, or unreadable. */
void check__environment(u32 pid, const char *name, char *value, size_t len);
