/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses a thread, and makes it load the library. */
#pragma once

#include "inject/inject.h"
#include "inject/space.h"

#define INJECT_NO_ROOM \
	"sonde has no memory for the filter of its own system calls: raise the limit that it was started with (`ulimit -d` and `ulimit -v`)"

#define LOAD_FILES_MS 30000 /* for all requests about the files before a thread is stopped: space__limit() */

/* Writes the functions to trace into the data of the shim that the process has. Returns false with the reason. */
bool configure__functions(u32 pid, int memory, const char *functions, char *why, size_t len);

/* Fills the result. Call it for a process that passed check.h. */
void load__shim(struct space *s, const char *shim, const struct inject_options *options, struct inject_result *r);
