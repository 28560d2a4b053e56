/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Moments as people write and read them. */
#ifndef SONDE_MODEL_CLOCK_H
#define SONDE_MODEL_CLOCK_H

#include "trace/writer.h"

/*
 * Reads A..B (half open; one side may be missing) into CLOCK_MONOTONIC ns. A side is seconds since start
 * (`12.5`) or local wall-clock time (`HH:MM:SS[.fff]`; the first such moment after the trace's start).
 * *to is 0 where there is no end. 0, or -EINVAL with a message in err.
 */
int clock__parse_range(const char *text, u64 start, const struct trace_head *head, u64 *from, u64 *to, char *err,
		       size_t err_len);
/* "2026-11-21 08:08:25.123 +0000", local time of a CLOCK_REALTIME moment */
char *clock__date(char *buf, size_t size, u64 realtime);
/* "12.345678": seconds since start, may be negative. digits after the point, 9 at most. */
char *clock__seconds(char *buf, size_t size, u64 time, u64 start, int digits);

#endif
