/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts Python's texts from their form in memory. */
#pragma once

#include "core/types.h"

/*
 * Converts `size` bytes of characters of `width` (1, 2 or 4) bytes to UTF-8. Bytes that Python could not decode
 * become \xNN, control characters and other halves of surrogate pairs '?'. The result is malloc'ed; NULL: no memory.
 */
char *python__utf8(const u8 *chars, size_t size, u32 width);
