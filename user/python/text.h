/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Python's texts, as they lie in memory. */
#ifndef SONDE_PYTHON_TEXT_H
#define SONDE_PYTHON_TEXT_H

#include "core/types.h"

/*
 * As UTF-8: size bytes of characters of `width` (1, 2 or 4) bytes. What no text for people holds (control
 * characters, halves of surrogate pairs) becomes '?'. malloc'ed, NULL: no memory.
 */
char *python__utf8(const u8 *chars, size_t size, u32 width);

#endif
