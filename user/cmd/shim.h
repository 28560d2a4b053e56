/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the library that records GPU work (cupti-shim/) into the command that sonde starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Families whose records the library makes, as bits. */
enum shim_need { SHIM_NEED_GPU = 1, SHIM_NEED_NVTX = 2, SHIM_NEED_FUNCTIONS = 4, SHIM_NEED_TORCH = 8 };
/* Returns those that -t requests. */
unsigned int shim__needs(const char *families);
/* Finds the library beside this program or where `make install` puts it. Returns 0 or -ENOENT. */
int shim__find(char *path, size_t size);
/* Returns the needs without those whose variable has another value; prints what will be missing. */
unsigned int shim__check_environment(unsigned int needs);
/* What there will not be without the library, "device times" */
const char *shim__records(unsigned int needs);
/*
 * Called in the child before it runs the command: CUDA, NVTX or the dynamic loader loads the library, which waits
 * briefly for its probes. functions: the Python functions to trace; NULL: none.
 */
void shim__set_environment(const char *path, unsigned int needs, const char *functions);
