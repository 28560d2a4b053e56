/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Line tables of code objects, in the formats of all versions. The tables are untrusted. */
#pragma once

#include "core/types.h"

/*
 * Returns the line of the instruction at `offset` bytes in the bytecode; 0: it has no line. A negative offset stands
 * for a frame that has not begun: its line is the first one.
 */
u32 python__line(u16 version, const u8 *table, size_t size, u32 first_line, s64 offset);
