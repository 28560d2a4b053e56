/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lines of source text that a trace has. */
#pragma once

#include "trace/reader.h"
#include "util/map.h"

struct source_lines {
	struct trace *trace;
	struct map lines; /* of a file's hash and a number; 0: the file's lines are not valid */
};

/* Reads all lines; t must outlive them. 0 or negative errno. */
int source_lines__load(struct source_lines *s, struct trace *t);
void source_lines__free(struct source_lines *s);
/* Returns the text of a line, without indentation; NULL: the trace does not have it. It lives as long as the trace. */
const char *source_lines__text(const struct source_lines *s, const char *file, u32 line);
