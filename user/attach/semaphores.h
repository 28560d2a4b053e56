/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words in a target's data that the kernel raises while a probe is there: which ones it may. */
#ifndef SONDE_ATTACH_SEMAPHORES_H
#define SONDE_ATTACH_SEMAPHORES_H

#include "core/types.h"

/*
 * Are all of these offsets in a file (0: none) words that are made to be raised: in a page of the CUPTI shim's that says
 * so, or in an ELF section .probes, where USDT has its semaphores? The attacher asks, whatever the worker wants.
 */
bool semaphores__are(int fd, const u64 *offsets, u32 n);

#endif
