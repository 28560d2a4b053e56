/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The clock, and where the time of a start goes: with SONDE_TEST=timing each step is a line on stderr, for
 * tests/bench/bench_start.py.
 */
#ifndef SONDE_UTIL_TIMING_H
#define SONDE_UTIL_TIMING_H

#include "core/types.h"

/* CLOCK_MONOTONIC, ns */
u64 timing__now(void);
/* The step that ends here took the time since the last call. */
void timing__step(const char *what);

#endif
