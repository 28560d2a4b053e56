/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread is chosen, and calls what loads the library. */
#ifndef SONDE_INJECT_LOAD_H
#define SONDE_INJECT_LOAD_H

#include "inject/inject.h"
#include "inject/space.h"

/* Fills the result. Of a process that check.h has nothing against. */
void load__shim(struct space *s, const char *shim, const struct inject_options *options, struct inject_result *r);

#endif
