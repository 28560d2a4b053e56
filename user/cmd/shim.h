/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the library that records GPU work (cupti-shim/) into the command that sonde starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Families whose records the library makes, as bits. */
enum shim_need { SHIM_NEED_GPU = 1, SHIM_NEED_NVTX = 2 };
/* Returns those that -t requests. */
unsigned int shim__needs(const char *families);
/* Finds the library beside this program or where `make install` puts it. Returns 0 or -ENOENT. */
int shim__find(char *path, size_t size);
/* Called in the child before it runs the command: CUDA, NVTX load the library, which waits briefly for its probes. */
void shim__set_environment(const char *path, unsigned int needs);
/* The variable that names the library for a need, "CUDA_INJECTION64_PATH" */
const char *shim__variable(enum shim_need need);
/* The library of another tool that the environment names for a need; NULL: none. */
const char *shim__other_library(enum shim_need need);
