/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread is chosen, and calls what loads the library. */
#ifndef SONDE_INJECT_LOAD_H
#define SONDE_INJECT_LOAD_H

#include "inject/inject.h"
#include "inject/space.h"

#define LOAD_FILES_MS 30000 /* for all that is asked about its files before a thread is stopped: space__limit() */

/* Fills the result. Of a process that check.h has nothing against. */
void load__shim(struct space *s, const char *shim, const struct inject_options *options, struct inject_result *r);

#endif
