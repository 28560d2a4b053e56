/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of user/output and by code that prints lines beside tables. */
#pragma once

#include "output/table.h"

#define COLOR_BOLD  "\033[1m"
#define COLOR_DIM   "\033[2m"
#define COLOR_RED   "\033[31m"
#define COLOR_PLAIN "\033[0m"

/* Returns the color, or "" if the options disable colours. */
const char *print__color(const struct output_options *options, const char *color);
/* Prints a text that a target chose, with control characters escaped. */
void print__clean(FILE *file, const char *text);
/* Columns by which the further lines of a text are indented */
#define PRINT_HANG 2
/*
 * Prints words from column `at` on, in lines of at most `line` columns; the further ones begin with prefix and indent
 * blanks. The text is clean. Returns the column after it.
 */
size_t print__words(FILE *file, const char *text, size_t at, const char *prefix, size_t indent, size_t line);
/* A cell's text in a table for people, malloc'ed; NULL: no memory. */
char *print__cell(const struct column *c, const struct value *v);
/* Returns how many rows to print: what the options request, by default all, or for people the table's own limit. */
u32 print__rows(const struct table *t, s64 rows, bool people);

/* Writes a table for people, with its title, and an empty line after it. */
void print_table__write(FILE *file, const struct output_options *options, const struct table *t);
void print__csv(const struct report_output *out, const struct output_options *options, FILE *file);
void print__json(const struct report_output *out, const struct output_options *options, FILE *file);
