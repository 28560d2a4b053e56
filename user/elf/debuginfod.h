/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Debug files from the servers that DEBUGINFOD_URLS names. The library is loaded only if needed, so that sonde runs
 * without it.
 */
#pragma once

#include "core/types.h"

bool debuginfod__available(void);
#define DEBUGINFOD_LIMIT_S 30

/*
 * Returns the descriptor of the debug file with this build id (hexadecimal), or negative errno; -ENOENT: no server
 * has it, -ETIMEDOUT: none answered within the limit. Called in a process that has nothing but the network
 * (attach/fetcher.h).
 */
int debuginfod__fetch(const char *build_id);
