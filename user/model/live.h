/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of the last interval as a trace in memory, for `sonde top` and the line of `sonde record`: findings and
 * reports read it as they read a file. Memory is bounded regardless of what the targets do: frames, functions and names
 * that were not used for long are evicted, and an interval with too many records is cut short.
 */
#pragma once

#include "model/query.h"

struct live;

int live__new(struct live **out, const struct schema *schema);
void live__free(struct live *l);
/* Adds one record; those that no interval contains cost next to nothing. 0 or negative errno. */
int live__feed(struct live *l, const void *record, u32 size);
/*
 * Ends the interval at `now` (CLOCK_MONOTONIC ns), up to which all records have been fed, and begins the next one.
 * unmeasured: ns of the interval in which families sched and sample did not measure (record --cost-limit). *out selects
 * the interval, which is shorter if there were too many records; it is valid until the next call of a function. The
 * first call only begins an interval, and sets *out to NULL. 0 or negative errno.
 */
int live__cut(struct live *l, u64 now, u64 unmeasured, const struct query **out);
/* Returns the number of records for which there was no room, so far. */
u64 live__lost(const struct live *l);
