/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the library that records GPU work (cupti-shim/) into the command that sonde starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Does -t ask for family gpu? */
bool shim__is_needed(const char *families);
/* Finds the library beside this program or where `make install` puts it. Returns 0 or -ENOENT. */
int shim__find(char *path, size_t size);
/* Called in the child before it runs the command: CUDA loads the library, which waits briefly for its probes. */
void shim__set_environment(const char *path);
