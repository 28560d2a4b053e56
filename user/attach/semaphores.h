/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Semaphores: 16-bit numbers in a target's data that the kernel increments while a probe is attached. */
#pragma once

#include "core/types.h"

/*
 * Are all of these offsets in a file (0: none) semaphores? They must be in a page that the CUPTI shim marks as such,
 * or in an ELF section .probes, which contains those of USDT. The attacher checks this for every request.
 */
bool semaphores__are(int fd, const u64 *offsets, u32 n);
/*
 * Wakes the shims that were loaded from this file and wait for a tracer (cupti-shim/shim.c): their futex is the file's
 * first word.
 */
void semaphores__wake(int fd);
