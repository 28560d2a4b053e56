/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The clock, and the time that the steps of a start take: with SONDE_TEST=timing each is a line on stderr, for
 * tests/bench/bench_start.py.
 */
#pragma once

#include "core/types.h"

#include <time.h>

/* Returns the ns of a clock; 0: there is no such clock. */
u64 timing__clock(clockid_t clock);
/* CLOCK_MONOTONIC, ns */
u64 timing__now(void);
/* Ends a step, which took the time since the last call. */
void timing__step(const char *what);
