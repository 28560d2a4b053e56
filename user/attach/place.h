/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where at a function's entry a probe costs least. */
#ifndef SONDE_ATTACH_PLACE_H
#define SONDE_ATTACH_PLACE_H

#include "core/types.h"

/*
 * How far after the entry to probe: 0, or 4 if the function begins with endbr64
 * and the kernel emulates what follows. Argument registers and the stack pointer
 * are those of the entry there, which a return probe needs. code holds the
 * function's first len bytes.
 */
u32 place__entry(const u8 *code, u64 len);
/* Does the kernel emulate this instruction instead of single-stepping a copy of it? */
bool place__emulated(const u8 *code, u64 len);

#endif
