/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Line tables of code objects, of every version; untrusted. */
#ifndef SONDE_PYTHON_LINES_H
#define SONDE_PYTHON_LINES_H

#include "core/types.h"

/*
 * The line of the instruction at `offset` bytes in the bytecode, 0: it has none.
 * Negative: the frame has not begun, which is the first line's.
 */
u32 python__line(u16 version, const u8 *table, size_t size, u32 first_line, s64 offset);

#endif
