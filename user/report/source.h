/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads lines of the source files that a trace names, if this machine has them. */
#pragma once

#include "util/map.h"

struct sources {
	struct map files; /* hash of the path: struct source */
	u32 unread; /* files that could not be read */
	u32 newer; /* files that were changed after the trace was made */
};

void sources__init(struct sources *s);
void sources__free(struct sources *s);
/*
 * Copies line `line` (from 1), trimmed and cut to a few hundred bytes, into buf; returns NULL if it cannot be read.
 * made: when the trace was made, CLOCK_REALTIME ns.
 */
const char *sources__line(struct sources *s, const char *path, u32 line, u64 made, char *buf, size_t size);
