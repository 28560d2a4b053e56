/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can't be loaded into, and why: by what /proc and the mapped files say. */
#ifndef SONDE_INJECT_CHECK_H
#define SONDE_INJECT_CHECK_H

#include "inject/space.h"

/* The number behind "NAME:" of a /proc/PID/status; 0: there is none. base: 10 or 16. */
u64 check__status(u32 pid, const char *name, int base);
/* A target's words, in place: what may move a terminal's cursor, and all that is not ASCII, becomes '?'. */
void check__plain(char *text);
/* 0, -ESRCH: there is no such process, or -ENOTSUP with the reason (of size len). */
int check__process(u32 pid, char *why, size_t len);
/* The same of what it has mapped: a C library that takes the shim. */
int check__libraries(struct space *s, const char *shim, char *why, size_t len);
/* The largest file that it may write, bytes: RLIMIT_FSIZE. */
u64 check__file_limit(u32 pid);
/* An environment variable as the process was started with; "": none, or not to be read. */
void check__environment(u32 pid, const char *name, char *value, size_t len);

#endif
