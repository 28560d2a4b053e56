/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON without building a tree. Integers have all 64 bits, doubles the shortest decimal that reads back equal.
 */
#pragma once

#include <stdio.h>

#include "core/types.h"

struct json_writer {
	FILE *file;
	u32 depth; /* objects and lists that are open, at most 63 */
	u64 lists, filled; /* a bit per depth: it is a list; it has an element */
};

/* key: NULL for an element of a list and for the outermost object. */
void json_writer__object(struct json_writer *w, const char *key);
void json_writer__list(struct json_writer *w, const char *key);
/* Ends the innermost object or list. */
void json_writer__end(struct json_writer *w);
void json_writer__u64(struct json_writer *w, const char *key, u64 u);
void json_writer__s64(struct json_writer *w, const char *key, s64 s);
/* Writes null for an infinity or NaN, which JSON lacks. */
void json_writer__double(struct json_writer *w, const char *key, double d);
void json_writer__bool(struct json_writer *w, const char *key, bool b);
/* Writes null for NULL. */
void json_writer__text(struct json_writer *w, const char *key, const char *text);

/* Prints a quoted JSON string; invalid UTF-8 becomes U+FFFD, and characters that a terminal may act on \uXXXX. */
void json__print_text(FILE *out, const char *text, size_t len);
