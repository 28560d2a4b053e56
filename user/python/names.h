/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Python's names of threads, read from a running process. */
#pragma once

#include "python/snapshot.h"

#define NAMES_MAX 4096 /* of one interpreter */

/*
 * Calls fn for each running thread of module threading: its tid in the process's own pid namespace, and its name, which
 * may have any bytes.
 */
void snapshot__names(struct snapshot *l, void (*fn)(u32 own_tid, const char *name, void *arg), void *arg);
