/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Debug files from the servers that DEBUGINFOD_URLS names. The library is loaded when asked for, so that sonde runs without it. */
#ifndef SONDE_ATTACH_DEBUGINFOD_H
#define SONDE_ATTACH_DEBUGINFOD_H

#include "core/types.h"

bool debuginfod__available(void);
/*
 * The descriptor of the debug file with this build id (hexadecimal), or negative
 * errno; -ENOENT: no server has it, -ETIMEDOUT: none answered in 30 s. Calls idle,
 * which may be NULL, about every 20 ms while it waits.
 */
int debuginfod__fetch(const char *build_id, void (*idle)(void *arg), void *arg);

#endif
