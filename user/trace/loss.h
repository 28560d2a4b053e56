/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which losses can change figures of the traced time: the same answer while a trace is written and when it is read. */
#ifndef SONDE_TRACE_LOSS_H
#define SONDE_TRACE_LOSS_H

#include <stdbool.h>

#include "core/types.h"

/*
 * Do figures of the time from live to stop lack none of the records lost between first and last? True of losses of single
 * events that all ended before live, and of ends that were not seen after stop. stop 0: not known yet. What names or
 * describes later events (family core's and proc's, entries of tables) is never outside. All in CLOCK_MONOTONIC ns.
 */
bool loss__is_outside(u16 family, s64 reason, u64 first, u64 last, u64 live, u64 stop);

/* Does it count libraries, not records? */
bool loss__is_of_library(s64 reason);

#endif
