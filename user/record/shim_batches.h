/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes events of the records of a batch (core/shim.h) that BPF has copied from a target. They are untrusted: every
 * length is checked, impossible times are rejected, and the pid is the one that the kernel knows. A record's tid is the
 * number in the thread's own pid namespace. If the thread itself handed the record over, it becomes the kernel's
 * number here; otherwise the family's `cut` translates it (session__translate_tid).
 */
#pragma once

#include "core/shim.h"

struct shim_form;

/*
 * Calls fn with each event of the batch, which it may change. Returns the number of records that could not be read.
 * size: of the batch, which is aligned to 8 bytes.
 */
u32 shim_batch__each(const struct shim_raw *b, u32 size, const struct shim_form *forms, u32 n_forms, u8 family,
		     void (*fn)(void *arg, void *event, u32 size), void *arg);
