/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Within user/output, and for what prints lines beside the tables. */
#ifndef SONDE_OUTPUT_PRINT_H
#define SONDE_OUTPUT_PRINT_H

#include "output/table.h"

#define COLOR_BOLD  "\033[1m"
#define COLOR_DIM   "\033[2m"
#define COLOR_RED   "\033[31m"
#define COLOR_PLAIN "\033[0m"

/* "" where the options want no colours */
const char *print__color(const struct output_options *options, const char *color);
/* A text that a target chose. */
void print__clean(FILE *file, const char *text);
/* How many rows of a table the options ask for; people: its own limit counts. */
u32 print__rows(const struct table *t, s64 rows, bool people);

/* The formats */
void print__people(const struct report_output *out, const struct output_options *options, FILE *file);
void print__csv(const struct report_output *out, const struct output_options *options, FILE *file);
void print__json(const struct report_output *out, const struct output_options *options, FILE *file);

#endif
