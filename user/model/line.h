/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One event as one line of text, made from the schema alone: for `export --to text` and `record --print`. */
#pragma once

#include <stdio.h>

#include "model/names.h"
#include "model/stacks.h"

struct line_context {
	const struct schema *schema;
	const struct names *names;
	u64 start; /* CLOCK_MONOTONIC ns that printed times are relative to; 0: print them as they are */
	const struct stacks *stacks; /* NULL: stacks are printed as ids */
};

/*
 * seconds since start (a span's end), thread, family, function or kind, duration, fields:
 *
 *	    0.123456789  python3 4711/4712        cuda      cudaMemcpy             12.345 us  ret=0 bytes=4096B ...
 *
 * Everything that comes from a target is cleaned. 0 or negative errno of the write.
 */
int line__print(FILE *out, const struct line_context *c, const struct view *v);
/* Prints a raw record, which the names must have been fed before. -EINVAL: the record is of no kind, or too short. */
int line__print_record(FILE *out, const struct line_context *c, const void *record, u32 size);
void line__heading(FILE *out);
