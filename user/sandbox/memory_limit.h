/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bounds the memory of what reads trace files: a small hostile file may expand to any size. */
#ifndef SONDE_SANDBOX_MEMORY_LIMIT_H
#define SONDE_SANDBOX_MEMORY_LIMIT_H

#include "core/types.h"

/*
 * Limits this process's private memory (RLIMIT_DATA) for files of so many bytes together. Far above what a recording
 * of that size takes; beyond it allocations fail. A sanitized build has none. Call it before files can't be opened.
 */
void memory_limit__set(u64 file_bytes);
/* The limit that was set, bytes; 0: none. */
u64 memory_limit__bytes(void);
/* Is it what the machine had available, and not what a file of that size takes at most? */
bool memory_limit__is_machines(void);

#endif
