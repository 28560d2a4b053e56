/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses times that people write. */
#pragma once

#include "trace/writer.h"

/*
 * Reads A..B (half open; one side may be missing) into CLOCK_MONOTONIC ns. A side is seconds since start
 * (`12.5`) or local wall-clock time (`HH:MM:SS[.fff]`; the first such moment after the trace's start).
 * *to is 0 where there is no end. 0, or -EINVAL with a message in err.
 */
int clock__parse_range(const char *text, u64 start, const struct trace_head *head, u64 *from, u64 *to, char *err,
		       size_t err_len);
