/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of code that a JIT compiler made, from the file /tmp/perf-PID.map that it writes. The format is that of
 * perf, tools/perf/Documentation/jit-interface.txt: a line for each function, "START SIZE NAME", with hexadecimal
 * numbers. It runs in a child of sonde-examiner.
 */
#pragma once

#include "record/examine/symbols.h"

struct perf_map;

/* Reads the file. Returns 0 or negative errno. */
int perf_map__new(struct perf_map **out, int fd);
void perf_map__free(struct perf_map *m);
/* Returns the approximate size in bytes. */
u64 perf_map__bytes(const struct perf_map *m);
/* Returns the function at an address of the process, valid until the next call. NULL: there is none. */
const struct code_place *perf_map__at(struct perf_map *m, u64 address);
