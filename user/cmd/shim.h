/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library that records GPU work (cupti-shim/), for the command that sonde itself starts. */
#ifndef SONDE_CMD_SHIM_H
#define SONDE_CMD_SHIM_H

#include <stdbool.h>
#include <stddef.h>

/* Does -t ask for family gpu? */
bool shim__is_needed(const char *families);
/* The library beside this program, or where `make install` puts it. 0 or -ENOENT. */
int shim__find(char *path, size_t size);
/* In the command, before it runs: has CUDA load it, and wait a moment for the probes. */
void shim__set_environment(const char *path);

#endif
