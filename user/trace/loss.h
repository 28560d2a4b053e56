/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which losses can change figures of the traced time, for writing and reading alike. */
#pragma once

#include <stdbool.h>

#include "core/types.h"

/*
 * Returns whether figures of the time from live to stop are complete in spite of a loss between first and last. This is
 * so for single events that ended before live, and for returns that were not seen after stop (0: not known yet). Losses
 * of what later events refer to (families core and proc, entries of tables) are never outside. CLOCK_MONOTONIC ns.
 */
bool loss__is_outside(u16 family, s64 reason, u64 first, u64 last, u64 live, u64 stop);

/* Returns whether the loss counts libraries and not records. */
bool loss__is_of_library(s64 reason);
