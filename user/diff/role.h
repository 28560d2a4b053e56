/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The role of a process or thread, which is the same in every run of a program. The processes and threads of two traces
 * are matched by their roles.
 */
#pragma once

#include "model/names.h"

#define ROLE_LEN 128

/* "srv.py" of `python3 -u /opt/srv.py --port 80`, "pip" of `python3 -m pip`, else the process's name. Returns buf. */
char *role__process(const struct names *n, u32 pid, char *buf, size_t size);
/*
 * "main thread", "other threads" (named as the process is), "threads worker" without the numbers at the name's end.
 * Returns buf.
 */
char *role__thread(const struct names *n, u32 pid, u32 tid, char *buf, size_t size);
