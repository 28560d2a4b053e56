/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits the memory of processes that read trace files: a small hostile file may expand to any size. */
#pragma once

#include "core/types.h"

/*
 * Limits this process's private memory (RLIMIT_DATA) for files of this total size. The limit is far above what a
 * recording of that size needs; beyond it allocations fail. A sanitized build has no limit. Call it while files can
 * still be opened.
 */
void memory_limit__set(u64 file_bytes);
/* The limit that was set, in bytes; 0: none. */
u64 memory_limit__bytes(void);
/* Is the limit the memory that the machine had available, rather than the maximum for a file of that size? */
bool memory_limit__is_machines(void);
/* What sonde was started with (ulimit -d, -v), bytes; ~0: as much as there is. */
u64 memory_limit__inherited(void);
